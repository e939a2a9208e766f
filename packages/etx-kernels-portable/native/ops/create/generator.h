// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_GENERATOR_H_
#define ETX_PORTABLE_GENERATOR_H_

#include <cstdint>

#include <etx/abi.h>

namespace etx::portable {

/// The numbers of one draw, each by its index. They come from Philox4x32-10 (Salmon, Moraes, Dror
/// and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), whose key is the seed and
/// whose counter is a block's index and the draw's, low words first. Cheap in ascending order.
class Numbers {
 public:
  explicit Numbers(etx_random draw) : draw_(draw) {}

  /// Word `index % 4` of block `index / 4`.
  uint32_t word(uint64_t index);
  /// In [0, 1), a multiple of 2^-digits: the upper digits of one word, at most 32.
  float uniform(uint64_t index, int digits);
  /// In [0, 1), a multiple of 2^-53: of words 2 * index, the lower one, and 2 * index + 1.
  double uniform(uint64_t index);
  /// Standard normal, by Box and Muller from numbers 2k and 2k + 1: the cosine's for an index 2k,
  /// the sine's for 2k + 1.
  double normal(uint64_t index);

 private:
  etx_random draw_;
  uint64_t block_ = UINT64_MAX;
  uint32_t words_[4] = {};
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_GENERATOR_H_
