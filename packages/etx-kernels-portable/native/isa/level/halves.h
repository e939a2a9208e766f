// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_HALVES_H_
#define ETX_PORTABLE_LEVEL_HALVES_H_

/// float16 and bfloat16 to float32 and back: the bits that <etx/dtype.h> defines.

#include "isa/isa.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

inline uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof(b));
  return b;
}
inline float float_of(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof(x));
  return x;
}

inline float one_from_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  const float small = static_cast<float>(static_cast<int32_t>(h & 0x3ffu)) * 5.9604644775390625e-8f;
  const uint32_t normal = rest + (rest >= 0x0f800000u ? 0x70000000u : 0x38000000u);
  return float_of(sign | (rest >= 0x00800000u ? normal : bits_of(small)));
}

inline uint16_t one_to_half(float x) {
  const uint32_t b = bits_of(x), magnitude = b & 0x7fffffffu;
  const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x47800000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<uint16_t>(((b >> 16) & 0x8000u) | half);
}

void from_half(const uint16_t* x, float* y, size_t n) {
  size_t i = 0;
#if defined(__F16C__)
#if ETX_SIMD_BYTES == 64
  for (; i + 32 <= n; i += 32) {
    const auto* const half = reinterpret_cast<const __m256i*>(x + i);
    const __m512 f = _mm512_cvtph_ps(_mm256_loadu_si256(half));
    const __m512 g = _mm512_cvtph_ps(_mm256_loadu_si256(half + 1));
    if (_mm512_cmp_ps_mask(f, g, _CMP_UNORD_Q) != 0) break;
    _mm512_storeu_ps(y + i, f);
    _mm512_storeu_ps(y + i + 16, g);
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    const __m256 f = _mm256_cvtph_ps(h);
    // The instruction makes signalling NaNs quiet.
    const __m256i low = _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 13);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    const __m256i kept = _mm256_and_si256(nan, _mm256_set1_epi32(0x00400000));
    const __m256i quiet = _mm256_andnot_si256(low, kept);
    _mm256_storeu_ps(y + i, _mm256_xor_ps(f, _mm256_castsi256_ps(quiet)));
  }
#endif
  for (; i < n; ++i) y[i] = one_from_half(x[i]);
}

void to_half(const float* x, uint16_t* y, size_t n) {
  size_t i = 0;
#if defined(__F16C__)
#if ETX_SIMD_BYTES == 64
  for (; i + 32 <= n; i += 32) {
    const __m512 f = _mm512_loadu_ps(x + i), g = _mm512_loadu_ps(x + i + 16);
    if (_mm512_cmp_ps_mask(f, g, _CMP_UNORD_Q) != 0) break;
    auto* const half = reinterpret_cast<__m256i*>(y + i);
    _mm256_storeu_si256(half, _mm512_cvtps_ph(f, 0));
    _mm256_storeu_si256(half + 1, _mm512_cvtps_ph(g, 0));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    __m256 f = _mm256_loadu_ps(x + i);
    const __m256 nan = _mm256_cmp_ps(f, f, _CMP_UNORD_Q);
    const __m256 sign = _mm256_and_ps(f, _mm256_set1_ps(-0.0f));
    const __m256 quiet = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    f = _mm256_blendv_ps(f, quiet, nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_cvtps_ph(f, 0));
  }
#endif
  for (; i < n; ++i) y[i] = one_to_half(x[i]);
}

ETX_NOINLINE void from_bfloat16(const uint16_t* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = float_of(static_cast<uint32_t>(x[i]) << 16);
}

void to_bfloat16(const float* x, uint16_t* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t b = bits_of(x[i]);
    const uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    const bool nan = (b & 0x7fffffffu) > 0x7f800000u;
    y[i] = static_cast<uint16_t>(nan ? (b >> 16) | 0x40u : rounded);
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_HALVES_H_
