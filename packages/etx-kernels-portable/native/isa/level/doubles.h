// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_DOUBLES_H_
#define ETX_PORTABLE_LEVEL_DOUBLES_H_

/// Elementary functions of float64, as vector_math.h has them of float32: exp and log 1 ulp, expm1
/// and tanh 2 ulp, erf 4 ulp.

#include <limits>

#include "isa/level/elements.h"

#if defined(__GNUC__)
#define ETX_SQRT __builtin_sqrt
#else
#include <math.h>
#define ETX_SQRT sqrt
#endif

namespace etx::portable {
namespace {

using VecD = Vec<double>;
using VecQ = Vec<uint64_t>;

#if defined(ETX_SIMD_VECTORS)
inline VecQ bits(VecD v) { return (VecQ)v; }
inline VecD from_bits(VecQ v) { return (VecD)v; }
#else
inline VecQ bits(VecD v) {
  VecQ r;
  memcpy(&r, &v, sizeof(r));
  return r;
}
inline VecD from_bits(VecQ v) {
  VecD r;
  memcpy(&r, &v, sizeof(r));
  return r;
}
#endif
inline VecD splat(double s) { return s - VecD{}; }

/// c[0] + c[1] x + c[2] x^2 + …
template <size_t N>
inline VecD polynomial(VecD x, const double (&c)[N]) {
  VecD y = splat(c[N - 1]);
  ETX_UNROLL
  for (size_t i = 2; i <= N; ++i) y = y * x + c[N - i];
  return y;
}

/// x = n ln2 + r with |r| <= ln2 / 2, and e^r - 1; x within [-746, 710].
struct ReducedExpD {
  VecD n, expm1;
};
inline ReducedExpD reduce_exp(VecD x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: the sum is a whole number.
  const VecD shifted = x * 1.4426950408889634 + kRound;
  const VecD n = shifted - kRound;
  VecD r = x - n * 0.69314718036912382;
  r = r - n * 1.9082149292705877e-10;
  constexpr double kC[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                           1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                           1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  return {n, r * r * polynomial(r, kC) + r};
}

/// 2^n for a whole n in [-1022, 1023].
inline VecD power_of_two(VecD n) { return from_bits(bits(n + (6755399441055744.0 + 1023)) << 52); }

inline VecD exp(VecD x) {
  VecD c = x < -746.0 ? splat(-746.0) : x;
  c = c > 710.0 ? splat(710.0) : c;
  const ReducedExpD e = reduce_exp(c);
  const VecD half = e.n * 0.5 + 6755399441055744.0 - 6755399441055744.0;
  return (e.expm1 + 1.0) * power_of_two(half) * power_of_two(e.n - half);
}

/// x = 2^e (1 + f) with 1 + f between sqrt(1 / 2) and sqrt(2); log(1 + f) is 2 atanh(f / (2 + f)),
/// in which f is taken exactly.
inline VecD log(VecD x) {
  constexpr uint64_t kExponent = 0x7ff0000000000000u, kOne = 0x3ff0000000000000u;
  constexpr double kC[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                           2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const VecD normal = x < 0x1p-1022 ? x * 0x1p54 : x;
  const VecD lost = x < 0x1p-1022 ? splat(54.0) : splat(0.0);
  const VecQ raised = bits(normal) + (kOne - 0x3fe6a09e667f3bcdu);
  const VecD f = from_bits(bits(normal) - (raised & kExponent) + kOne) - 1.0;
  const VecD e = from_bits((raised >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
  const VecD n = e - lost, half = f * 0.5 * f, s = f / (f + 2.0), z = s * s;
  const VecD rest = s * (half + z * polynomial(z, kC)) + n * 1.9082149292705877e-10;
  const VecD finite = n * 0.69314718036912382 - ((half - rest) - f);
  const VecD positive = x <= std::numeric_limits<double>::max() ? finite : x;
  const VecD zero = splat(-std::numeric_limits<double>::infinity());
  const VecD none = splat(std::numeric_limits<double>::quiet_NaN());
  return x > 0.0 ? positive : (x == 0.0 ? zero : none);
}

inline VecD tanh(VecD x) {
  const VecQ sign = bits(x) & 0x8000000000000000u;
  VecD a = from_bits(bits(x) ^ sign);
  a = a > 20.0 ? splat(20.0) : a;
  const ReducedExpD e = reduce_exp(a + a);
  const VecD scale = power_of_two(e.n);
  const VecD t = e.expm1 * scale + (scale - 1.0);
  return from_bits(bits(t / (t + 2.0)) | sign);
}

/// Half of it, twice: 2^n is not a number where n is 1024.
inline VecD expm1(VecD x) {
  VecD c = x < -60.0 ? splat(-60.0) : x;
  c = c > 710.0 ? splat(710.0) : c;
  const ReducedExpD e = reduce_exp(c);
  const VecD scale = power_of_two(e.n - 1.0);
  const VecD half = e.expm1 * scale + (scale - 0.5);
  return x == 0.0 ? x : half + half;
}

inline VecD sigmoid(VecD x) { return 1.0 / (1.0 + exp(-x)); }

/// A polynomial fitted to erf(x) / x below 1; above, one minus e to a polynomial fitted to log
/// erfc.
inline VecD erf(VecD x) {
  const VecQ sign = bits(x) & 0x8000000000000000u;
  VecD a = from_bits(bits(x) ^ sign);
  a = a > 6.0 ? splat(6.0) : a;
  constexpr double kSmall[] = {
      1.12837916709551257,     -0.376126389031835435,    0.112837916709451297,
      -0.0268661706432569943,  0.00522397760726994529,   -0.000854832598254322506,
      0.000120552951126670011, -0.000014924740785377575, 1.64474711905946181e-6,
      -1.62088298568102008e-7, 1.37215204063510944e-8,   -7.7985438505499469e-10};
  constexpr double kLarge[] = {
      14.1124374021472258,      18.1652489709254132,      6.04220659279341827,
      0.0816509155119400447,    -0.0341284066295440002,   0.014384350919029132,
      -0.00595490627889016499,  0.00237165751395074544,   -0.000889067908143005135,
      0.000343027155058749858,  -9.93285948538326577e-6,  0.0000805278451231385113,
      -0.000121912369018976735, -0.000437863355718228567, -0.000635707767753822156,
      -0.000570245651110105585, -0.000315609578731614515, -0.000103394192316846984,
      -0.0000149949444590180777};
  const VecD small = a * polynomial(a * a, kSmall);
  const VecD near = a < 1.0 ? splat(1.0) : a;
  const ReducedExpD e = reduce_exp(-polynomial((near - 3.5) * 0.4, kLarge));
  const VecD large = 1.0 - (e.expm1 + 1.0) * power_of_two(e.n);
  return from_bits(bits(a < 1.0 ? small : large) | sign);
}

template <VecD (*f)(VecD)>
inline void each_double(const double* x, double* y, size_t n) {
  constexpr size_t step = kVec<double>;
  for (size_t i = 0; i < n; i += step) {
    const bool is_whole = n - i >= step;
    const VecD v = f(is_whole ? load_vec(x + i) : load_first<Same<double>>(x + i, n - i));
    if (is_whole) {
      store_vec(y + i, v);
    } else {
      memcpy(y + i, &v, (n - i) * sizeof(double));
    }
  }
}

double exp_sum_double(const double* x, double top, double* y, size_t n) {
  constexpr size_t step = kVec<double>;
  VecD total = {};
  size_t i = 0;
  for (; i + step <= n; i += step) {
    const VecD e = exp(load_vec(x + i) - top);
    total = total + e;
    store_vec(y + i, e);
  }
  double sum = add_all<double>(total);
  if (i < n) {
    const VecD e = exp(load_first<Same<double>>(x + i, n - i) - top);
    memcpy(y + i, &e, (n - i) * sizeof(double));
    for (; i < n; ++i) sum += y[i];
  }
  return sum;
}

inline VecD square_root(VecD x) {
#if ETX_SIMD_BYTES == 64
  return (VecD)_mm512_sqrt_pd((__m512d)x);
#elif ETX_SIMD_BYTES == 32
  return (VecD)_mm256_sqrt_pd((__m256d)x);
#elif defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
  return (VecD)_mm_sqrt_pd((__m128d)x);
#else
  double t[kVec<double>];
  store_vec(t, x);
  for (double& number : t) number = ETX_SQRT(number);
  return load_vec(t);
#endif
}

size_t root_double(const double* x, double* y, size_t n, bool root, bool reciprocal) {
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    VecD v = load_vec(x + i);
    if (root) v = square_root(v);
    store_vec(y + i, reciprocal ? 1.0 / v : v);
  }
  return i;
}

size_t div_double(const double* a, const double* b, size_t step, double* y, size_t n) {
  const VecD same = splat(*b);
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    store_vec(y + i, load_vec(a + i) / (step == 0 ? same : load_vec(b + i)));
  }
  return i;
}

size_t polynomial_double(const double* x, double* y, size_t n, const double* c, size_t terms) {
  constexpr size_t kWidth = kVec<double>, kAtOnce = kLanes == 4 ? 4 : 8;
  size_t i = 0;
  for (; i + kAtOnce * kWidth <= n; i += kAtOnce * kWidth) {
    VecD at[kAtOnce], sum[kAtOnce];
    ETX_UNROLL
    for (size_t k = 0; k < kAtOnce; ++k) {
      at[k] = load_vec(x + i + k * kWidth), sum[k] = splat(c[terms - 1]);
    }
    for (size_t term = terms - 1; term > 0; --term) {
      ETX_UNROLL
      for (size_t k = 0; k < kAtOnce; ++k) sum[k] = sum[k] * at[k] + c[term - 1];
    }
    ETX_UNROLL
    for (size_t k = 0; k < kAtOnce; ++k) store_vec(y + i + k * kWidth, sum[k]);
  }
  return i;
}

void exp_double(const double* x, double* y, size_t n) { each_double<exp>(x, y, n); }
void expm1_double(const double* x, double* y, size_t n) { each_double<expm1>(x, y, n); }
void log_double(const double* x, double* y, size_t n) { each_double<log>(x, y, n); }
void tanh_double(const double* x, double* y, size_t n) { each_double<tanh>(x, y, n); }
void sigmoid_double(const double* x, double* y, size_t n) { each_double<sigmoid>(x, y, n); }
void erf_double(const double* x, double* y, size_t n) { each_double<erf>(x, y, n); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_DOUBLES_H_
