// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_FIXED_POINT_H_
#define ETX_CORTEX_M_FIXED_POINT_H_

#include <cstdint>

namespace etx::cortex_m {

/// a + b of two's complement, also beyond int32.
inline int32_t wrapping_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

/// A positive factor: `multiplier` / 2^31 * 2^`shift`.
struct Factor {
  int32_t multiplier, shift;
};

/// value * factor: the upper half of the doubled product, halves up; then, for a negative shift, a
/// division by a power of two, halves away from zero. Any arguments give a result; shifts count
/// between -31 and 31.
inline int32_t requantize(int32_t value, Factor factor) {
  const bool is_right = factor.shift < 0;
  const int left = is_right ? 0 : factor.shift & 31;
  const auto wide = static_cast<int32_t>(static_cast<uint32_t>(value) << left);
  const int64_t product = int64_t{wide} * factor.multiplier + (int64_t{1} << 30);
  const auto high = static_cast<int32_t>(product >> 31);
  if (!is_right) return high;
  return wrapping_add(wrapping_add(high, high >> 31) >> (~factor.shift & 31), 1) >> 1;
}

/// As above, plus `offset`, within [low, high].
struct Epilogue {
  int32_t offset, low, high;

  int8_t operator()(int32_t sum, Factor factor) const {
    const int32_t shifted = wrapping_add(requantize(sum, factor), offset);
    return static_cast<int8_t>(shifted < low ? low : shifted > high ? high : shifted);
  }
};

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_FIXED_POINT_H_
