// SPDX-License-Identifier: BSD-3-Clause
/// The rule of Cortex-M for what sums become: an int32 multiplier and a shift, the high half of the
/// doubled product, ties away from zero in both steps. `fixed_point.py` compiles it into the loops
/// for AVX2 (ETX_FIXED_POINT) and measures it next to float32. The multiplier is the significand of
/// the float32 scale, so that both rules multiply by the same number.

namespace etx::portable {
namespace {

/// high(2 * a * b) of four products, rounded to nearest, ties away from zero, in the low halves of
/// 64 bits; `b` is not negative.
inline __m256i doubled_high(__m256i a, __m256i b) {
  const __m256i product = _mm256_mul_epi32(a, b);
  const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), product);
  const __m256i half = _mm256_set1_epi64x(1ll << 30);
  return _mm256_srli_epi64(_mm256_add_epi64(_mm256_add_epi64(product, half), sign), 31);
}

/// x / 2^shift, ties away from zero; shift from 0 to 31.
inline __m256i shifted(__m256i x, __m256i shift) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, shift), one);
  const __m256i least = _mm256_add_epi32(_mm256_srli_epi32(mask, 1), _mm256_srli_epi32(x, 31));
  const __m256i is_more = _mm256_cmpgt_epi32(_mm256_and_si256(x, mask), least);
  return _mm256_sub_epi32(_mm256_srav_epi32(x, shift), is_more);
}

/// sum * scale, for scales below 1.
inline __m256i multiply_fixed(VecI sum, VecF scale) {
  const __m256i a = (__m256i)sum, b = (__m256i)scale;
  const __m256i significand = _mm256_or_si256(_mm256_and_si256(b, _mm256_set1_epi32(0x7FFFFF)),
                                              _mm256_set1_epi32(0x800000));
  const __m256i multiplier = _mm256_slli_epi32(significand, 7);
  const __m256i shift = _mm256_min_epi32(
      _mm256_sub_epi32(_mm256_set1_epi32(126), _mm256_srli_epi32(b, 23)), _mm256_set1_epi32(31));
  const __m256i even = doubled_high(a, multiplier);
  const __m256i odd = doubled_high(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(multiplier, 32));
  return shifted(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA), shift);
}

}  // namespace
}  // namespace etx::portable
