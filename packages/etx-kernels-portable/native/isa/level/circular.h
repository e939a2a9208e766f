// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_CIRCULAR_H_
#define ETX_PORTABLE_LEVEL_CIRCULAR_H_

/// Sine and cosine, both computed in float64: of float64 within 4 ulp, of float32 rounded once.

#include "isa/level/doubles.h"

namespace etx::portable {
namespace {

/// As many elements as a vector of float64 has numbers; what is left of |r| <= pi / 2 after the
/// first 33 bits of pi.
template <typename T>
struct Circular;
template <>
struct Circular<double> {
  static VecD load(const double* p) { return load_vec(p); }
  static void store(double* p, VecD v) { store_vec(p, v); }
  static VecD rest(VecD r, VecD turns) {
    return r - turns * 1.2154201012607932e-10 - turns * 4.044532497591901e-21;
  }
  static constexpr int kTerms = 8;
};
template <>
struct Circular<float> {
#if defined(ETX_SIMD_VECTORS)
  using Floats = VectorOf<float, ETX_SIMD_BYTES / 2>;
  static VecD load(const float* p) {
#if ETX_SIMD_BYTES == 64
    return (VecD)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif ETX_SIMD_BYTES == 32
    return (VecD)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    return __builtin_convertvector(*reinterpret_cast<const Floats::unaligned*>(p), VecD);
#endif
  }
  static void store(float* p, VecD v) {
    *reinterpret_cast<Floats::unaligned*>(p) = __builtin_convertvector(v, Floats::type);
  }
#else
  static VecD load(const float* p) { return *p; }
  static void store(float* p, VecD v) { *p = static_cast<float>(v); }
#endif
  static VecD rest(VecD r, VecD turns) { return r - turns * 1.2154201013012384e-10; }
  static constexpr int kTerms = 5;
};

/// Leaves x as it is where it is NaN or beyond 2^20: to there, products of `turns` and parts of pi
/// are exact, but the last one.
template <typename T>
size_t circular(const T* x, T* y, size_t n, double ahead, const double* series, bool& left) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: the sum's low bits hold n.
  constexpr size_t step = kVec<double>;
  constexpr int kTerms = Circular<T>::kTerms;
  VecD c[kTerms], beyond = {};
  ETX_UNROLL
  for (int k = 0; k < kTerms; ++k) c[k] = splat(series[k]);
  size_t i = 0;
  for (; i + step <= n; i += step) {
    const VecD v = Circular<T>::load(x + i);
    const VecD shifted = (v * 0.3183098861837907 + ahead) + kRound;
    const VecD turns = (shifted - kRound) - ahead;
    const VecD r = Circular<T>::rest(v - turns * 3.1415926534682512, turns);
    const VecD z = r * r;
    VecD sine = c[kTerms - 1];
    ETX_UNROLL
    for (int k = 2; k <= kTerms; ++k) sine = sine * z + c[kTerms - k];
    sine = r + r * (z * sine);
    const VecQ zero = bits(r) & 0x8000000000000000u;  // of the sign of r, as sine is
    const VecD result = from_bits((bits(sine) | zero) ^ (bits(shifted) << 63));
    const VecD far = from_bits(bits(v) & 0x7fffffffffffffffu);
    beyond = beyond + (far <= 1048576.0 ? splat(0.0) : splat(1.0));
    Circular<T>::store(y + i, far <= 1048576.0 ? result : v);
  }
  if (add_all<double>(beyond) != 0) left = true;
  return i;
}
constexpr auto circular_float = circular<float>;
constexpr auto circular_double = circular<double>;

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_CIRCULAR_H_
