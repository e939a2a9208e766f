// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_FIXED_POINT_H_
#define ETX_CORTEX_M_FIXED_POINT_H_

#include <cstdint>

namespace etx::cortex_m {

/// A positive factor: `multiplier` / 2^31 * 2^`shift`.
struct Factor {
  int32_t multiplier, shift;
};

/// value * factor: the upper half of the doubled product, halves up; then, for a negative shift, a
/// division by a power of two, halves away from zero. Any arguments give a result.
inline int32_t requantize(int32_t value, Factor factor) {
  const int32_t left = factor.shift > 0 ? factor.shift & 31 : 0;
  const int32_t right = factor.shift < 0 ? (factor.shift < -31 ? 31 : -factor.shift) : 0;
  const auto wide = static_cast<int32_t>(static_cast<uint32_t>(value) << left);
  const int64_t product = int64_t{wide} * factor.multiplier + (int64_t{1} << 30);
  const auto high = static_cast<int32_t>(product >> 31);
  if (right == 0) return high;
  const auto mask = static_cast<int32_t>((uint32_t{1} << right) - 1);
  const int32_t rest = high & mask;
  const int32_t half = static_cast<int32_t>(static_cast<uint32_t>(mask) >> 1) + (high < 0 ? 1 : 0);
  return (high >> right) + (rest > half ? 1 : 0);
}

/// As above, plus `offset`, within [low, high].
struct Epilogue {
  int32_t offset, low, high;

  int8_t operator()(int32_t sum, Factor factor) const {
    const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(requantize(sum, factor)) +
                                              static_cast<uint32_t>(offset));
    return static_cast<int8_t>(shifted < low ? low : shifted > high ? high : shifted);
  }
};

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_FIXED_POINT_H_
