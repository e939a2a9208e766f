// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_VECTOR_MATH_H_
#define ETX_PORTABLE_VECTOR_MATH_H_

/// Elementary functions on vectors of float32, without calls, branches or tables. Bits of floats
/// are unsigned: each float, NaN too, goes through every step, and signed numbers must not
/// overflow.
///
/// Errors over the whole range, measured against a 60-digit reference: exp and log 1 ulp, tanh,
/// erf and sigmoid 3 ulp (sigmoid is 0 below -88.7). NaN, infinities, zeros and subnormal numbers
/// are treated as in libm.

#include "isa/simd.h"

namespace etx::portable {
namespace {

/// c[0] + c[1] x + c[2] x^2 + …
template <size_t N>
inline VecF polynomial(VecF x, const float (&c)[N]) {
  VecF y = splat(c[N - 1]);
  ETX_UNROLL
  for (size_t i = 2; i <= N; ++i) y = y * x + c[N - i];
  return y;
}

/// x = n ln2 + r with |r| <= ln2 / 2, and e^r - 1; x within [-105, 105]. `f` is n.
struct ReducedExp {
  VecI n;
  VecF f, expm1;
};
inline ReducedExp reduce_exp(VecF x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's low bits hold the integer.
  const VecF shifted = x * 1.44269504f + kRound;
  const VecI n = to_signed(bits(shifted) - 0x4B400000u);
  const VecF f = shifted - kRound;
  VecF r = x - f * 0.693145751953125f;
  r = r - f * 1.42860682030941723e-6f;
  constexpr float kC[] = {0.5f,         0.16666667f,  0.04166634f,
                          0.008333271f, 0.001394206f, 0.00019915032f};
  return {n, f, r * r * polynomial(r, kC) + r};
}

/// 2^n for -126 <= n <= 127.
inline VecF power_of_two(VecI n) { return from_bits(to_unsigned(n + 127) << 23); }

/// e^x, subnormal and infinite results too.
inline VecF expand(const ReducedExp& e) {
#if ETX_SIMD_BYTES == 64
  return (VecF)_mm512_scalef_ps((__m512)(e.expm1 + 1.0f), (__m512)e.f);
#else
  const VecI half = e.n >> 1;
  return (e.expm1 + 1.0f) * power_of_two(half) * power_of_two(e.n - half);
#endif
}

inline VecF exp(VecF x) {
  return expand(reduce_exp(smallest(largest(x, splat(-104.5f)), splat(89.0f))));
}

/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1) loses nothing near zero.
inline VecF expm1(VecF x) {
  const VecF c = smallest(largest(x, splat(-104.5f)), splat(89.0f));
  const ReducedExp e = reduce_exp(c);
  const VecI half = e.n >> 1;
  const VecF low = power_of_two(half), high = power_of_two(e.n - half);
  const VecF y = (e.expm1 * low + (low - power_of_two(-(e.n - half)))) * high;
  return x == 0.0f ? x : y;
}

/// e^x for x <= 0; what is below 1e-37 may be zero.
inline VecF exp_of_negative(VecF x) {
  const ReducedExp e = reduce_exp(largest(x, splat(-87.0f)));
#if ETX_SIMD_BYTES == 64
  // No subnormal result, which may take a processor a hundred cycles.
  const __mmask16 normal = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
  return (VecF)_mm512_maskz_scalef_ps(normal, (__m512)(e.expm1 + 1.0f), (__m512)e.f);
#else
  const VecF y = (e.expm1 + 1.0f) * power_of_two(e.n);
  return x < -87.0f ? splat(0.0f) : y;
#endif
}

inline VecF log(VecF x) {
  const VecI subnormal = x < 1.17549435e-38f;
  const VecU i = bits(subnormal ? x * 8388608.0f : x);
  const VecI e = to_signed(i - 0x3f3504f3u) >> 23;
  const VecF f = from_bits(i - (to_unsigned(e) << 23)) - 1.0f;
  const VecF n = to_floats(e) - (subnormal ? splat(23.0f) : splat(0.0f));
  constexpr float kC[] = {0.33333316f, -0.25000867f, 0.20002456f, -0.16622458f,
                          0.14176178f, -0.13145852f, 0.12924097f, -0.07863239f};
  const VecF ff = f * f;
  VecF y = ff * f * polynomial(f, kC) + n * 1.42860682030941723e-6f;
  y = y - ff * 0.5f;
  y = n * 0.693145751953125f + (f + y);
  y = x > 3.4028235e38f ? x : y;
  y = x == 0.0f ? from_bits(splat(uint32_t{0xff800000})) : y;
  y = x < 0.0f ? from_bits(splat(uint32_t{0x7fc00000})) : y;
  return x != x ? x : y;
}

/// e^2a - 1 = 2^n (e^r - 1) + (2^n - 1) loses nothing near zero, and tanh follows by one division.
inline VecF tanh(VecF x) {
  const VecU sign = bits(x) & 0x80000000u;
  VecF a = from_bits(bits(x) ^ sign);
  a = smallest(a, splat(9.2f));
  const ReducedExp e = reduce_exp(a + a);
  const VecF scale = power_of_two(e.n);
  const VecF t = e.expm1 * scale + (scale - 1.0f);
  return from_bits(bits(t / (t + 2.0f)) | sign);
}

/// 1 + e^x.
inline VecF one_and_exp(VecF x) {
#if ETX_SIMD_BYTES == 64
  return 1.0f + exp(x);
#else
  const ReducedExp e = reduce_exp(smallest(largest(x, splat(-86.0f)), splat(89.0f)));
  return (e.expm1 + 1.0f) * power_of_two(e.n - 1) * 2.0f + 1.0f;
#endif
}

inline VecF sigmoid(VecF x) { return 1.0f / one_and_exp(-x); }

inline VecF silu(VecF x) { return x / one_and_exp(-x); }

/// An odd polynomial below 1; above, one minus the exponential of a polynomial fitted to log erfc.
inline VecF erf(VecF x) {
  const VecU sign = bits(x) & 0x80000000u;
  VecF a = from_bits(bits(x) ^ sign);
  a = smallest(a, splat(4.05f));
  constexpr float kSmall[] = {1.1283791f,    -0.37612325f, 0.1128018f,
                              -0.026711311f, 0.004917551f, -0.0005631419f};
  constexpr float kLarge[] = {0.00031245942f, 1.1272023f,    0.6379649f,     0.10325627f,
                              -0.02190651f,   0.0029640147f, -0.00018797259f};
  const VecF small = a * polynomial(a * a, kSmall);
  const ReducedExp e = reduce_exp(-polynomial(a, kLarge));
  const VecF large = 1.0f - (e.expm1 + 1.0f) * power_of_two(e.n);
  return from_bits(bits(a < 1.0f ? small : large) | sign);
}

inline VecF gelu(VecF x) { return x * 0.5f * (1.0f + erf(x * 0.70710678f)); }

/// With the tanh approximation.
inline VecF gelu_tanh(VecF x) {
  const VecF inner = 0.79788456f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + tanh(inner));
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_VECTOR_MATH_H_
