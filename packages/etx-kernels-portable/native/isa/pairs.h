// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PAIRS_H_
#define ETX_PORTABLE_PAIRS_H_

#include <cstdint>

namespace etx::portable {

/// c[i][j] = bias[i] + sum of a[i][k] * b[k][j] in bfloat16, summed in float32 by the processor's
/// dot products of two pairs; b is a panel of kPairColumns columns, packed in pairs of rows.
struct PairProduct {
  const uint16_t* a = nullptr;
  int64_t a_stride = 0;
  int64_t rows = 0, pairs = 0, columns = 0;
  const uint16_t* panel = nullptr;
  const float* bias = nullptr;  ///< One per row; null: zero.
  float* c = nullptr;
  int64_t c_stride = 0;
  bool transposed = false;  ///< Stored at c[j * c_stride + i].
};
constexpr int64_t kPairColumns = 32;

struct Pairs {
  void (*multiply)(const PairProduct& p);
  /// panel[k / 2][j][k % 2] = b[k * stride + j] for an even depth; zero behind `columns`.
  void (*pack_rows)(const uint16_t* b, int64_t stride, int64_t columns, int64_t pairs,
                    uint16_t* panel);
};

/// Null where the processor has no such dot product, or ETX_KERNELS_ISA asks for a level.
const Pairs* pairs();

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PAIRS_H_
