// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_MACHINE_H_
#define ETX_CORTEX_M_MACHINE_H_

#include <cstdint>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) != 0
#define ETX_CORTEX_M_MVE 1
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define ETX_CORTEX_M_DSP 1
#include <arm_acle.h>
#endif

/// What kernels need of the processor that they are compiled for: vectors (MVE), pairs of halves
/// (DSP), or nothing.
namespace etx::cortex_m {

/// Whether a shift is above 0.
inline bool has_growth(const int32_t* shifts, int32_t count) {
  int32_t most = 0;
  for (int32_t i = 0; i < count; ++i) most = shifts[i] > most ? shifts[i] : most;
  return most > 0;
}

#if defined(ETX_CORTEX_M_MVE)

/// requantize of fixed_point.h for four values; without `grows` no shift is above 0.
template <bool grows>
inline int32x4_t requantize(int32x4_t value, int32x4_t multipliers, int32x4_t shifts) {
  if (grows) {
    const int32x4_t zero = vdupq_n_s32(0);
    value = vshlq_s32(value, vmaxq_s32(shifts, zero));
    shifts = vminq_s32(shifts, zero);
  }
  value = vqrdmulhq_s32(value, multipliers);
  const int32x4_t below = vshrq_n_s32(vandq_s32(value, shifts), 31);
  return vrshlq_s32(vqaddq_s32(value, below), shifts);
}

/// Copies `count` bytes.
inline void copy_bytes(const int8_t* from, int32_t count, int8_t* to) {
  asm volatile(
      "wlstp.8 lr, %[n], 2f\n"
      "1: vldrb.8 q0, [%[from]], #16\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [from] "+r"(from), [to] "+r"(to)
      : [n] "r"(count)
      : "lr", "q0", "cc", "memory");
}

inline void fill_bytes(int8_t* to, int32_t count, int8_t value) {
  asm volatile(
      "vdup.8 q0, %[value]\n"
      "wlstp.8 lr, %[n], 2f\n"
      "1: vstrb.8 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [to] "+r"(to)
      : [n] "r"(count), [value] "r"(value)
      : "lr", "q0", "cc", "memory");
}

#else

inline void fill_bytes(int8_t* to, int32_t count, int8_t value) {
  for (int32_t i = 0; i < count; ++i) to[i] = value;
}

/// Copies `count` bytes.
inline void copy_bytes(const int8_t* from, int32_t count, int8_t* to) {
#if defined(__ARM_FEATURE_UNALIGNED)
  for (; count >= 4; count -= 4, from += 4, to += 4) __builtin_memcpy(to, from, 4);
#endif
  for (int32_t i = 0; i < count; ++i) to[i] = from[i];
}

#endif

#if defined(ETX_CORTEX_M_DSP)

/// Bytes 0 and 2 of a word as two halves with their signs, plus `offsets`.
inline int16x2_t even_bytes(uint32_t word, int16x2_t offsets) {
  return __sxtab16(offsets, static_cast<int8x4_t>(word));
}
/// Bytes 1 and 3.
inline int16x2_t odd_bytes(uint32_t word, int16x2_t offsets) {
  int16x2_t halves;
  asm("sxtab16 %0, %1, %2, ror #8" : "=r"(halves) : "r"(offsets), "r"(word));
  return halves;
}
inline int16x2_t even_bytes(uint32_t word) { return __sxtb16(static_cast<int8x4_t>(word)); }
inline int16x2_t odd_bytes(uint32_t word) {
  int16x2_t halves;
  asm("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
  return halves;
}

inline uint32_t load_word(const int8_t* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  return word;
}

#endif

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_MACHINE_H_
