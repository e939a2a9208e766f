// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SIMD_H_
#define ETX_PORTABLE_SIMD_H_

/// Vectors of float32 as wide as the instruction set this file is compiled for, on the vector
/// extensions of GCC and Clang; a "vector" of one float elsewhere, or with ETX_SIMD_SCALAR.
/// Intrinsics only where the extensions go through memory: parts of vectors, sums of lanes.
///
/// Everything has internal linkage: objects compiled for different instruction sets must not share
/// an inline function, or the linker could keep the copy that the processor lacks.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace etx::portable {
namespace {

#if defined(__GNUC__) && !defined(ETX_SIMD_SCALAR) && (defined(__SSE2__) || defined(__ARM_NEON))
#define ETX_SIMD_VECTORS 1
#if defined(__AVX512F__)
#define ETX_SIMD_BYTES 64
#elif defined(__AVX2__)
#define ETX_SIMD_BYTES 32
#else
#define ETX_SIMD_BYTES 16
#endif
typedef float VecF __attribute__((vector_size(ETX_SIMD_BYTES)));
typedef int32_t VecI __attribute__((vector_size(ETX_SIMD_BYTES)));
typedef uint32_t VecU __attribute__((vector_size(ETX_SIMD_BYTES)));
typedef float VecFUnaligned __attribute__((vector_size(ETX_SIMD_BYTES), aligned(4), may_alias));
typedef int32_t VecIUnaligned __attribute__((vector_size(ETX_SIMD_BYTES), aligned(4), may_alias));

inline VecF load(const float* p) { return *reinterpret_cast<const VecFUnaligned*>(p); }
inline void store(float* p, VecF v) { *reinterpret_cast<VecFUnaligned*>(p) = v; }
inline void store(int32_t* p, VecI v) { *reinterpret_cast<VecIUnaligned*>(p) = v; }
inline VecF splat(float s) { return s - VecF{}; }
inline VecI splat(int32_t s) { return VecI{} + s; }
inline VecU splat(uint32_t s) { return VecU{} + s; }
inline VecU bits(VecF v) { return (VecU)v; }
inline VecF from_bits(VecU v) { return (VecF)v; }
inline VecI to_signed(VecU v) { return (VecI)v; }
inline VecU to_unsigned(VecI v) { return (VecU)v; }
inline VecF to_floats(VecI v) { return __builtin_convertvector(v, VecF); }
#else
#define ETX_SIMD_BYTES 4
typedef float VecF;
typedef int32_t VecI;
typedef uint32_t VecU;

inline VecF load(const float* p) { return *p; }
inline void store(float* p, VecF v) { *p = v; }
inline void store(int32_t* p, VecI v) { *p = v; }
inline VecF splat(float s) { return s; }
inline VecI splat(int32_t s) { return s; }
inline VecU splat(uint32_t s) { return s; }
inline VecU bits(VecF v) {
  VecU r;
  memcpy(&r, &v, sizeof(r));
  return r;
}
inline VecF from_bits(VecU v) {
  VecF r;
  memcpy(&r, &v, sizeof(r));
  return r;
}
inline VecI to_signed(VecU v) {
  VecI r;
  memcpy(&r, &v, sizeof(r));
  return r;
}
inline VecU to_unsigned(VecI v) { return static_cast<VecU>(v); }
inline VecF to_floats(VecI v) { return static_cast<VecF>(v); }
#endif

constexpr int kLanes = ETX_SIMD_BYTES / 4;

#if defined(__clang__)
#define ETX_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define ETX_UNROLL _Pragma("GCC unroll 64")
#else
#define ETX_UNROLL
#endif

#if defined(__clang__)
#define ETX_NOINLINE __attribute__((noinline))
#elif defined(__GNUC__)
#define ETX_NOINLINE __attribute__((noinline, noclone))
#endif
/// For loops whose accumulators stay in registers only there; not where code is dear.
#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#define ETX_INLINE_LAMBDA __attribute__((always_inline))
#else
#define ETX_INLINE_LAMBDA
#endif
#if defined(__GNUC__)
#define ETX_INLINE inline __attribute__((always_inline))
inline void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }
inline void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }
#else
#define ETX_NOINLINE
#define ETX_INLINE inline
inline void prefetch(const void*) {}
inline void prefetch_to_write(const void*) {}
#endif

#if ETX_SIMD_BYTES == 64
inline __mmask16 first(size_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
#elif ETX_SIMD_BYTES == 32
inline __m256i first(size_t n) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
}
#endif

/// The first `n` <= kLanes floats, then `fill`.
inline VecF load_part(const float* p, size_t n, float fill = 0.0f) {
#if ETX_SIMD_BYTES == 64
  return (VecF)_mm512_mask_loadu_ps((__m512)splat(fill), first(n), p);
#elif ETX_SIMD_BYTES == 32
  const __m256i mask = first(n);
  const __m256 part = _mm256_maskload_ps(p, mask);
  return (VecF)_mm256_blendv_ps((__m256)splat(fill), part, _mm256_castsi256_ps(mask));
#else
  float t[kLanes];
  for (size_t i = 0; i < static_cast<size_t>(kLanes); ++i) t[i] = i < n ? p[i] : fill;
  return load(t);
#endif
}
#if ETX_SIMD_BYTES == 32  // A function that is given a vector leaves the upper halves in use.
ETX_INLINE
#else
inline
#endif
void store_part(float* p, VecF v, size_t n) {
#if ETX_SIMD_BYTES == 64
  _mm512_mask_storeu_ps(p, first(n), (__m512)v);
#elif ETX_SIMD_BYTES == 32
  // Stores under a mask take some processors twenty times as long as others.
  if (n >= kLanes) return store(p, v);
  __m128 left = _mm256_castps256_ps128((__m256)v);
  if ((n & 4) != 0) {
    _mm_storeu_ps(p, left);
    left = _mm256_extractf128_ps((__m256)v, 1), p += 4;
  }
  if ((n & 2) != 0) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), left);
    left = _mm_movehl_ps(left, left), p += 2;
  }
  if ((n & 1) != 0) _mm_store_ss(p, left);
#else
  float t[kLanes];
  store(t, v);
  for (size_t i = 0; i < n; ++i) p[i] = t[i];
#endif
}

/// The larger; `a` where either is NaN.
#if ETX_SIMD_BYTES == 64
inline VecF largest(VecF a, VecF b) { return (VecF)_mm512_max_ps((__m512)b, (__m512)a); }
inline VecF smallest(VecF a, VecF b) { return (VecF)_mm512_min_ps((__m512)b, (__m512)a); }
#elif ETX_SIMD_BYTES == 32
inline VecF largest(VecF a, VecF b) { return (VecF)_mm256_max_ps((__m256)b, (__m256)a); }
inline VecF smallest(VecF a, VecF b) { return (VecF)_mm256_min_ps((__m256)b, (__m256)a); }
#elif defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
inline VecF largest(VecF a, VecF b) { return (VecF)_mm_max_ps((__m128)b, (__m128)a); }
inline VecF smallest(VecF a, VecF b) { return (VecF)_mm_min_ps((__m128)b, (__m128)a); }
#else
inline VecF largest(VecF a, VecF b) { return b > a ? b : a; }
inline VecF smallest(VecF a, VecF b) { return b < a ? b : a; }
#endif

/// The sum of all lanes, by halves.
inline float add_lanes(VecF v) {
#if ETX_SIMD_BYTES >= 32
#if ETX_SIMD_BYTES == 64
  const __m512 all = (__m512)v;
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), upper);
#else
  const __m256 eight = (__m256)v;
#endif
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
  float t[kLanes];
  store(t, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) t[i] += t[i + width];
  }
  return t[0];
#endif
}
/// y[i] = the sum of all lanes of v[i], as `add_lanes` gives it, + bias[i]; `bias` may be null.
inline void store_four_sums(const VecF (&v)[4], const float* bias, float* y) {
#if ETX_SIMD_BYTES == 64
  const auto halves = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  };
  const __m512 ab = halves((__m512)v[0], (__m512)v[1]), cd = halves((__m512)v[2], (__m512)v[3]);
  const __m512 fours =
      _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 twos = _mm512_add_ps(fours, _mm512_permute_ps(fours, 0xee));
  const __m512 ones = _mm512_add_ps(twos, _mm512_movehdup_ps(twos));
  const __m512i at = _mm512_castsi128_si512(_mm_setr_epi32(0, 4, 8, 12));
  const __m128 sums = _mm512_castps512_ps128(_mm512_permutexvar_ps(at, ones));
#elif ETX_SIMD_BYTES == 32
  const auto halves = [](__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  };
  const __m256 ab = halves((__m256)v[0], (__m256)v[1]), cd = halves((__m256)v[2], (__m256)v[3]);
  const __m256 twos =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 ones = _mm256_add_ps(twos, _mm256_movehdup_ps(twos));
  const __m256i at = _mm256_setr_epi32(0, 4, 2, 6, 0, 4, 2, 6);
  const __m128 sums = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(ones, at));
#else
  for (int i = 0; i < 4; ++i) y[i] = add_lanes(v[i]) + (bias == nullptr ? 0.0f : bias[i]);
#endif
#if ETX_SIMD_BYTES >= 32
  _mm_storeu_ps(y, bias == nullptr ? sums : _mm_add_ps(sums, _mm_loadu_ps(bias)));
#endif
}
/// The largest of all lanes; NaN where there is one.
inline float max_lanes(VecF v) {
#if ETX_SIMD_BYTES >= 32
#if ETX_SIMD_BYTES == 64
  if (_mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q) != 0) return __builtin_nanf("");
  const __m512 all = (__m512)v;
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(all), upper);
#else
  const __m256 eight = (__m256)v;
  if (_mm256_movemask_ps(_mm256_cmp_ps(eight, eight, _CMP_UNORD_Q)) != 0) {
    return __builtin_nanf("");
  }
#endif
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#else
  float t[kLanes];
  store(t, v);
  float m = t[0];
  for (int i = 1; i < kLanes; ++i) m = t[i] > m || t[i] != t[i] ? t[i] : m;
  return m;
#endif
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_SIMD_H_
