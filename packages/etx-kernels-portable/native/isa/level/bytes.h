// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_BYTES_H_
#define ETX_PORTABLE_LEVEL_BYTES_H_

/// Bytes to lanes of 32 bits and back.

#include "isa/simd.h"

#if defined(__SSE2__) && defined(ETX_SIMD_VECTORS)
#include <immintrin.h>
#endif

namespace etx::portable {
namespace {

/// `store_bytes` stores the low byte of each lane, of int8; `widen_bytes` is its reverse.
#if ETX_SIMD_BYTES == 64
inline void store_bytes(int8_t* p, VecI v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)v));
}
inline VecI widen_bytes(const int8_t* p) {
  return (VecI)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
#elif ETX_SIMD_BYTES == 32
inline void store_bytes(int8_t* p, VecI v) {
  const __m256i words = _mm256_packs_epi32((__m256i)v, (__m256i)v);
  const __m256i bytes = _mm256_packs_epi16(words, words);
  const __m256i joined =
      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(joined));
}
inline VecI widen_bytes(const int8_t* p) {
  return (VecI)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
#elif defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
inline void store_bytes(int8_t* p, VecI v) {
  const __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);
  const int32_t bytes = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
  memcpy(p, &bytes, sizeof(bytes));
}
inline VecI widen_bytes(const int8_t* p) {
  int32_t bytes;
  memcpy(&bytes, p, sizeof(bytes));
  const __m128i b = _mm_cvtsi32_si128(bytes);
  const __m128i words = _mm_unpacklo_epi8(b, b);
  return (VecI)_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 24);
}
#elif ETX_SIMD_BYTES == 16
typedef int8_t VecB __attribute__((vector_size(4)));
inline void store_bytes(int8_t* p, VecI v) {
  const VecB b = __builtin_convertvector(v, VecB);
  memcpy(p, &b, sizeof(b));
}
inline VecI widen_bytes(const int8_t* p) {
  VecB b;
  memcpy(&b, p, sizeof(b));
  return __builtin_convertvector(b, VecI);
}
#else
inline void store_bytes(int8_t* p, VecI v) { *p = static_cast<int8_t>(v); }
inline VecI widen_bytes(const int8_t* p) { return *p; }
#endif

#if ETX_SIMD_BYTES == 64
inline void store_bytes_part(int8_t* p, VecI v, int64_t n) {
  _mm512_mask_cvtepi32_storeu_epi8(p, first(static_cast<size_t>(n)), (__m512i)v);
}
inline VecI widen_bytes_part(const int8_t* p, int64_t n) {
  return (VecI)_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(static_cast<size_t>(n)), p));
}
#else
inline void store_bytes_part(int8_t* p, VecI v, int64_t n) {
  int8_t t[kLanes];
  store_bytes(t, v);
  memcpy(p, t, static_cast<size_t>(n));
}
inline VecI widen_bytes_part(const int8_t* p, int64_t n) {
  int8_t t[kLanes] = {};
  memcpy(t, p, static_cast<size_t>(n));
  return widen_bytes(t);
}
#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_BYTES_H_
