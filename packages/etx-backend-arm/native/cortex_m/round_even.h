// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_ROUND_EVEN_H_
#define ETX_CORTEX_M_ROUND_EVEN_H_

#include <cstdint>
#include <cstring>

namespace etx::cortex_m {

/// The nearest integer, halves to even; at most 2^22 from 0, where none matters to int8.
inline int32_t round_even(float x) {
  constexpr int32_t kMost = 1 << 22;
#if defined(__arm__) && !defined(__ARM_FP)
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  const auto exponent = static_cast<int32_t>(bits >> 23 & 255) - 127;
  const bool is_number = bits << 1 <= 0xff000000u;
  if (exponent < -1) return 0;
  int32_t whole = kMost;
  if (exponent < 22) {
    const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    const int shift = 23 - exponent;
    whole = static_cast<int32_t>(mantissa >> shift);
    const uint32_t rest = mantissa << (32 - shift);
    if (rest > 0x80000000u || (rest == 0x80000000u && (whole & 1) != 0)) ++whole;
  }
  return bits >> 31 != 0 && is_number ? -whole : whole;
#else
  constexpr float kShift = 12582912.0f;
  if (!(x < 4194304.0f)) return kMost;
  if (x < -4194304.0f) return -kMost;
  volatile float moved = x + kShift;
  return static_cast<int32_t>(moved - kShift);
#endif
}

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_ROUND_EVEN_H_
