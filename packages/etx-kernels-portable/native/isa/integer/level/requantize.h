// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_REQUANTIZE_H_
#define ETX_PORTABLE_INTEGER_REQUANTIZE_H_

/// The one rule by which sums become int8: clamp(round(float(sum) * scale) + zero point), rounded
/// half to even. The product is clamped before it is rounded, which is the same since the bounds
/// are whole numbers, and leaves a number to which 1.5 * 2^23 can be added: its last bit is then 1.

#include "isa/integer/integer.h"
#include "isa/level/bytes.h"

#if defined(ETX_FIXED_POINT) && ETX_SIMD_BYTES == 32
#include ETX_FIXED_POINT  // Of a benchmark: another rule for the sums of layers.
#endif

namespace etx::portable {
namespace {

struct Requantize {
  VecF scale, low, high;
  VecI unbias;
  int16_t words_zero;
  int8_t least, most;

  static constexpr float kMagic = 12582912.0f;
  static constexpr int32_t kMagicBits = 0x4B400000;

  Requantize(float factor, const Bounds& b)
      : scale(splat(factor)),
        low(splat(static_cast<float>(b.low - b.zero_point))),
        high(splat(static_cast<float>(b.high - b.zero_point))),
        unbias(splat(b.zero_point - kMagicBits)),
        words_zero(static_cast<int16_t>(b.zero_point)),
        least(static_cast<int8_t>(b.low)),
        most(static_cast<int8_t>(b.high)) {}
  explicit Requantize(const Bounds& b) : Requantize(1.0f, b) {}

  /// `v` is already multiplied.
  VecI from_scaled(VecF v) const {
    v = smallest(largest(v, low), high);
    return to_signed(bits(v + kMagic)) + unbias;
  }
  VecI from_floats(VecF v) const { return from_scaled(v * scale); }
  VecI from_sums(VecI v, VecF factors) const { return from_scaled(to_floats(v) * factors); }
  VecI from_sums(VecI v) const { return from_scaled(to_floats(v) * scale); }

#if ETX_SIMD_BYTES == 64 || ETX_SIMD_BYTES == 32
#if ETX_SIMD_BYTES == 64
#define ETX_VECTOR_OP(name) _mm512_##name
  typedef __m512i Raw;
#else
#define ETX_VECTOR_OP(name) _mm256_##name
  typedef __m256i Raw;
#endif
  /// Rounded as the rule says; what int32 cannot hold is then the largest int16 or the least.
  static Raw round(VecI v, VecF factors) {
#if defined(ETX_FIXED_POINT) && ETX_SIMD_BYTES == 32
    return multiply_fixed(v, factors);
#else
    const VecF scaled = smallest(to_floats(v) * factors, splat(32767.0f));
#if ETX_SIMD_BYTES == 64
    return _mm512_cvtps_epi32((__m512)scaled);
#else
    return _mm256_cvtps_epi32((__m256)scaled);
#endif
#endif
  }
  /// Bytes of 4 vectors, in the order of `join_bytes`. Saturated words keep their order, so that
  /// zero point and bounds may follow.
  VecI join(const VecI (&v)[4], const VecF (&factors)[4]) const {
    const Raw zero = ETX_VECTOR_OP(set1_epi16)(words_zero);
    const Raw a = ETX_VECTOR_OP(packs_epi32)(round(v[0], factors[0]), round(v[1], factors[1]));
    const Raw b = ETX_VECTOR_OP(packs_epi32)(round(v[2], factors[2]), round(v[3], factors[3]));
    const Raw y = ETX_VECTOR_OP(packs_epi16)(ETX_VECTOR_OP(adds_epi16)(a, zero),
                                             ETX_VECTOR_OP(adds_epi16)(b, zero));
    return (VecI)ETX_VECTOR_OP(min_epi8)(
        ETX_VECTOR_OP(max_epi8)(y, ETX_VECTOR_OP(set1_epi8)(least)),
        ETX_VECTOR_OP(set1_epi8)(most));
  }
#undef ETX_VECTOR_OP
#endif
#if ETX_SIMD_BYTES == 64
  /// Bytes of 4 vectors, one after the other.
  __m512i join_rows(const VecI (&v)[4], const VecF (&factors)[4]) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, (__m512i)join(v, factors));
  }
  /// Stores the bytes that `mask` has of up to `rows` rows, each of one vector or two.
  template <int V, int rows>
  void store_rows(int8_t* p, int64_t stride, const VecI (&v)[4], const VecF (&factors)[4],
                  uint32_t mask) const {
    const __m512i y = join_rows(v, factors);
    const __m256i begin = _mm512_castsi512_si256(y), end = _mm512_extracti64x4_epi64(y, 1);
    if constexpr (V == 2) {
      _mm256_mask_storeu_epi8(p, mask, begin);
      if (rows > 1) _mm256_mask_storeu_epi8(p + stride, mask, end);
    } else {
      const __mmask16 part = static_cast<__mmask16>(mask);
      _mm_mask_storeu_epi8(p, part, _mm256_castsi256_si128(begin));
      if (rows > 1) _mm_mask_storeu_epi8(p + stride, part, _mm256_extracti128_si256(begin, 1));
      if (rows > 2) _mm_mask_storeu_epi8(p + 2 * stride, part, _mm256_castsi256_si128(end));
      if (rows > 3) _mm_mask_storeu_epi8(p + 3 * stride, part, _mm256_extracti128_si256(end, 1));
    }
  }
#elif ETX_SIMD_BYTES == 32
  /// Stores the first `n` bytes of one vector or two.
  template <int V>
  void store_block(int8_t* p, const VecI (&v)[V], const VecF (&factors)[V], int64_t n) const {
    static_assert(V <= 2, "a block of columns has two vectors");
    __m256i w = _mm256_packs_epi32(round(v[0], factors[0]), round(v[V - 1], factors[V - 1]));
    w = _mm256_permute4x64_epi64(_mm256_adds_epi16(w, _mm256_set1_epi16(words_zero)), 0xD8);
    __m128i y = _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
    y = _mm_min_epi8(_mm_max_epi8(y, _mm_set1_epi8(least)), _mm_set1_epi8(most));
    if (n >= V * kLanes && V == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), y);
      return;
    }
    if (n >= 8) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(p), y);
      if (V == 1) return;
      y = _mm_srli_si128(y, 8), p += 8;
    }
    store_few(p, _mm_cvtsi128_si64(y), n % 8);
  }
  static void store_few(int8_t* p, int64_t bytes, int64_t n) {
    for (int64_t i = 0; i < n; ++i, bytes >>= 8) p[i] = static_cast<int8_t>(bytes);
  }
#endif
};

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_REQUANTIZE_H_
