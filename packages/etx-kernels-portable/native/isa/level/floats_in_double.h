// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_FLOATS_IN_DOUBLE_H_
#define ETX_PORTABLE_LEVEL_FLOATS_IN_DOUBLE_H_

/// Functions of float32 that are computed in float64, which needs no care for what cancels, and
/// rounded once: 0.51 ulp. Polynomials are those of float_series.h.

#include <limits>

#include "isa/isa.h"
#include "isa/level/circular.h"

namespace etx::portable {
namespace {

constexpr uint64_t kMinus = 0x8000000000000000u;

/// Even and odd powers by themselves: half as many steps wait for each other.
template <int terms>
inline VecD series_of(VecD x, const double* c) {
  constexpr int kEven = (terms - 1) / 2 * 2, kOdd = terms / 2 * 2 - 1;
  const VecD z = x * x;
  VecD even = splat(c[kEven]), odd = splat(c[kOdd]);
  ETX_UNROLL
  for (int k = kEven - 2; k >= 0; k -= 2) even = even * z + c[k];
  ETX_UNROLL
  for (int k = kOdd - 2; k > 0; k -= 2) odd = odd * z + c[k];
  return odd * x + even;
}

inline VecD without_sign(VecD v) { return from_bits(bits(v) & ~kMinus); }
inline VecD at_most(VecD v, double most) { return v > most ? splat(most) : v; }

/// x = n log(2) + r, and e^r - 1.
inline ReducedExpD reduce_exp_of_float(VecD x, const double* series) {
  constexpr double kRound = 6755399441055744.0;
  const VecD n = (x * 1.4426950408889634 + kRound) - kRound;
  const VecD r = x - n * 0.6931471805599453;
  return {n, r * series_of<7>(r, series)};
}

/// 1 + f = u / 2^n is between sqrt(1 / 2) and sqrt(2).
size_t log_float(const float* x, float* y, size_t n, const Logarithm& of, const double* series) {
  constexpr uint64_t kExponent = 0x7ff0000000000000u, kOne = 0x3ff0000000000000u;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD v = Circular<float>::load(x + i);
    VecD u = v + of.shift;
    if (of.quotient) u = u / (1.0 - v);
    const VecQ raised = bits(u) + (kOne - 0x3fe6a09e667f3bcdu);
    const VecD f = from_bits(bits(u) - (raised & kExponent) + kOne) - 1.0;
    const VecD e = from_bits((raised >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
    VecD log = f * series_of<12>(f, series) + e * 0.6931471805599453;
    log = u < kInfinite ? log : u;
    log = u > 0.0 ? log : (u == 0.0 ? splat(-kInfinite) : splat(kNan));
    log = without_sign(v) < of.tiny ? v : log * of.scale;
    Circular<float>::store(y + i, log);
  }
  return i;
}

/// The arc of the smaller of |s| and |c| over the larger, then of the octant.
size_t angle_float(const float* s, const float* c, float* y, size_t n, const double* series) {
  constexpr double kHalf = 1.5707963267948966;
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD sine = Circular<float>::load(s + i);
    const VecD cosine = Circular<float>::load(c + i);
    const VecD a = at_most(without_sign(sine), 1e300), b = at_most(without_sign(cosine), 1e300);
    const VecD larger = a > b ? a : b;
    const VecD r = (a > b ? b : a) / (larger == 0.0 ? splat(1.0) : larger);
    VecD arc = r * series_of<11>(r * r, series);
    arc = a > b ? kHalf - arc : arc;
    const VecD side = from_bits((bits(cosine) & kMinus) | bits(splat(1.0)));
    arc = side < 0.0 ? 2 * kHalf - arc : arc;
    Circular<float>::store(y + i, from_bits(bits(arc) | (bits(sine) & kMinus)));
  }
  return i;
}

/// t = e^|x| - 1 loses nothing near zero: sinh = (t + t / (1 + t)) / 2.
size_t hyperbolic_float(const float* x, float* y, size_t n, bool sine, const double* series) {
  const double one = sine ? 0 : 1, part = 1 - one;
  const VecQ sign = (sine ? kMinus : 0u) - VecQ{};
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD v = Circular<float>::load(x + i);
    const ReducedExpD e = reduce_exp_of_float(at_most(without_sign(v), 100.0), series);
    const VecD scale = power_of_two(e.n);
    const VecD t = e.expm1 * scale + (scale - 1.0);
    const VecD sum = (t + one) + (t * part + one) / (t + 1.0);
    Circular<float>::store(y + i, from_bits(bits(sum * 0.5) | (bits(v) & sign)));
  }
  return i;
}

size_t erfc_float(const float* x, float* y, size_t n, const double* exp, const double* series) {
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD v = Circular<float>::load(x + i);
    const VecD a = at_most(without_sign(v), 10.1);
    const ReducedExpD e = reduce_exp_of_float(-a * a, exp);
    const VecD fall = (e.expm1 + 1.0) * power_of_two(e.n);
    const VecD rest = fall * series_of<12>((a - 3.0) / (a + 3.0), series);
    Circular<float>::store(y + i, v < 0.0 ? 2.0 - rest : rest);
  }
  return i;
}

/// |r| <= pi / 2 is what is left of x; the cosine is the sine of pi / 2 - |r|.
size_t tan_float(const float* x, float* y, size_t n, const double* series, bool& left) {
  constexpr double kRound = 6755399441055744.0;
  const auto sine = [series](VecD r) {
    const VecD z = r * r;
    return r + r * (z * series_of<5>(z, series));
  };
  VecD beyond = {};
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD v = Circular<float>::load(x + i);
    const VecD turns = (v * 0.3183098861837907 + kRound) - kRound;
    const VecD r = Circular<float>::rest(v - turns * 3.1415926534682512, turns);
    const VecD far = without_sign(v);
    beyond = beyond + (far <= 1048576.0 ? splat(0.0) : splat(1.0));
    const VecD tan = sine(r) / sine(1.5707963267948966 - without_sign(r));
    Circular<float>::store(y + i, v == 0.0 ? v : tan);
  }
  if (add_all<double>(beyond) != 0) left = true;
  return i;
}

/// With k next to a / b, a - k b is exact: k and b have no more than 23 and 24 bits.
size_t rest_float(const float* a, const float* b, float* y, size_t n, Rest rest, bool& left) {
  constexpr double kRound = 6755399441055744.0;
  const VecQ of_a = (rest == Rest::OfTrunc ? kMinus : 0u) - VecQ{}, of_b = kMinus ^ of_a;
  const VecQ whole = (rest == Rest::Floor ? ~uint64_t{0} : 0u) - VecQ{};
  VecD beyond = {};
  size_t i = 0;
  for (; i + kVec<double> <= n; i += kVec<double>) {
    const VecD p = Circular<float>::load(a + i), d = Circular<float>::load(b + i);
    const VecD q = p / d;
    const VecD k = (q + kRound) - kRound, r = p - k * d;
    const VecQ sign = (bits(p) & of_a) | (bits(d) & of_b);
    const VecD next = from_bits(bits(without_sign(d)) | sign), on_side = from_bits(bits(r) ^ sign);
    const VecD down = on_side < 0.0 ? k - 1.0 : k;
    const VecD other = on_side < 0.0 ? r + next : r;
    const VecD left_over = r == 0.0 ? from_bits(bits(p) & kMinus) : other;
    const VecQ floor = bits(down) | (bits(q) & kMinus);
    Circular<float>::store(y + i, from_bits((floor & whole) | (bits(left_over) & ~whole)));
    const VecD reach = without_sign(q) + without_sign(d) * 0.0;
    beyond = beyond + (reach < 4194304.0 ? splat(0.0) : splat(1.0));
  }
  if (add_all<double>(beyond) != 0) left = true;
  return i;
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_FLOATS_IN_DOUBLE_H_
