// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_INTERLEAVE_H_
#define ETX_PORTABLE_INTEGER_INTERLEAVE_H_

/// Four vectors of bytes become four of quadruples, one byte of each vector in each lane, and four
/// vectors of numbers become one of bytes. Processors do both within 128 bits: the order of lanes
/// that `interleave` leaves is the one that `join_bytes` undoes.

#include "isa/integer/level/dot.h"

namespace etx::portable {
namespace {

#if defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
#define ETX_INTEGER_INTERLEAVES 1
#if ETX_SIMD_BYTES == 64
#define ETX_VECTOR_OP(name) _mm512_##name
typedef __m512i Raw;
#elif ETX_SIMD_BYTES == 32
#define ETX_VECTOR_OP(name) _mm256_##name
typedef __m256i Raw;
#else
#define ETX_VECTOR_OP(name) _mm_##name
typedef __m128i Raw;
#endif

inline void interleave(const VecI (&x)[4], VecI (&y)[4]) {
  const Raw a = (Raw)x[0], b = (Raw)x[1], c = (Raw)x[2], d = (Raw)x[3];
  const Raw ab_low = ETX_VECTOR_OP(unpacklo_epi8)(a, b),
            ab_high = ETX_VECTOR_OP(unpackhi_epi8)(a, b);
  const Raw cd_low = ETX_VECTOR_OP(unpacklo_epi8)(c, d),
            cd_high = ETX_VECTOR_OP(unpackhi_epi8)(c, d);
  y[0] = (VecI)ETX_VECTOR_OP(unpacklo_epi16)(ab_low, cd_low);
  y[1] = (VecI)ETX_VECTOR_OP(unpackhi_epi16)(ab_low, cd_low);
  y[2] = (VecI)ETX_VECTOR_OP(unpacklo_epi16)(ab_high, cd_high);
  y[3] = (VecI)ETX_VECTOR_OP(unpackhi_epi16)(ab_high, cd_high);
}

inline VecI join_bytes(const VecI (&x)[4]) {
  const Raw low = ETX_VECTOR_OP(packs_epi32)((Raw)x[0], (Raw)x[1]);
  const Raw high = ETX_VECTOR_OP(packs_epi32)((Raw)x[2], (Raw)x[3]);
  return (VecI)ETX_VECTOR_OP(packs_epi16)(low, high);
}
#undef ETX_VECTOR_OP

#elif defined(ETX_SIMD_VECTORS) && defined(__ARM_FEATURE_DOTPROD)
#define ETX_INTEGER_INTERLEAVES 1

inline void interleave(const VecI (&x)[4], VecI (&y)[4]) {
  const int8x16_t a = (int8x16_t)x[0], b = (int8x16_t)x[1], c = (int8x16_t)x[2],
                  d = (int8x16_t)x[3];
  const int16x8_t ab_low = (int16x8_t)vzip1q_s8(a, b), ab_high = (int16x8_t)vzip2q_s8(a, b);
  const int16x8_t cd_low = (int16x8_t)vzip1q_s8(c, d), cd_high = (int16x8_t)vzip2q_s8(c, d);
  y[0] = (VecI)vzip1q_s16(ab_low, cd_low);
  y[1] = (VecI)vzip2q_s16(ab_low, cd_low);
  y[2] = (VecI)vzip1q_s16(ab_high, cd_high);
  y[3] = (VecI)vzip2q_s16(ab_high, cd_high);
}

inline VecI join_bytes(const VecI (&x)[4]) {
  const int16x8_t low = vcombine_s16(vmovn_s32((int32x4_t)x[0]), vmovn_s32((int32x4_t)x[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32((int32x4_t)x[2]), vmovn_s32((int32x4_t)x[3]));
  return (VecI)vcombine_s8(vmovn_s16(low), vmovn_s16(high));
}
#endif

#if defined(ETX_INTEGER_INTERLEAVES)
constexpr int64_t kGroup = ETX_SIMD_BYTES;  ///< Channels of a vector of bytes.

/// What multiplies a vector of quadruples: itself, or its pairs of int16.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
constexpr int kLaneParts = 1;
inline void spread(VecI v, VecI (&parts)[kLaneParts]) { parts[0] = v; }
inline VecI dot_lanes(VecI sum, const VecI (&x)[kLaneParts], const VecI (&w)[kLaneParts]) {
#if ETX_SIMD_BYTES == 64
  return (VecI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x[0], (__m512i)w[0]);
#elif defined(__AVXVNNI__)
  return (VecI)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x[0], (__m256i)w[0]);
#else
  return (VecI)vdotq_s32((int32x4_t)sum, (int8x16_t)x[0], (int8x16_t)w[0]);
#endif
}
#else
constexpr int kLaneParts = 2;
inline void spread(VecI v, VecI (&parts)[kLaneParts]) {
  const Right pairs(v);
  parts[0] = pairs.even, parts[1] = pairs.odd;
}
inline VecI dot_lanes(VecI sum, const VecI (&x)[kLaneParts], const VecI (&w)[kLaneParts]) {
#if ETX_SIMD_BYTES == 32
  return sum + (VecI)_mm256_madd_epi16((__m256i)x[0], (__m256i)w[0]) +
         (VecI)_mm256_madd_epi16((__m256i)x[1], (__m256i)w[1]);
#else
  return sum + (VecI)_mm_madd_epi16((__m128i)x[0], (__m128i)w[0]) +
         (VecI)_mm_madd_epi16((__m128i)x[1], (__m128i)w[1]);
#endif
}
#endif

/// Loads and stores the first `n` bytes, at most a vector.
inline VecI load_bytes_part(const void* p, int64_t n) {
#if ETX_SIMD_BYTES == 64
  const __mmask64 mask = n >= kGroup ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  return (VecI)_mm512_maskz_loadu_epi8(mask, p);
#else
  VecI v = {};
  memcpy(&v, p, static_cast<size_t>(n < kGroup ? n : kGroup));
  return v;
#endif
}
inline void store_vector_part(void* p, VecI v, int64_t n) {
#if ETX_SIMD_BYTES == 64
  const __mmask64 mask = n >= kGroup ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  _mm512_mask_storeu_epi8(p, mask, (__m512i)v);
#else
  if (n >= kGroup) {
    memcpy(p, &v, sizeof(v));
  } else {
    memcpy(p, &v, static_cast<size_t>(n));
  }
#endif
}
#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_INTERLEAVE_H_
