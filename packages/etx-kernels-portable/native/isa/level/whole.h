// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WHOLE_H_
#define ETX_PORTABLE_LEVEL_WHOLE_H_

/// Whole numbers near others.

#include "isa/level/doubles.h"

namespace etx::portable {
namespace {

/// No bits are left behind the point of a sum that is `whole` or more. Zeros keep their sign.
template <Rounding to, typename V, typename Bits, typename T>
inline V rounded(V x, Bits sign_bit, T whole) {
  const auto sign = bits(x) & sign_bit;
  const V a = from_bits(bits(x) ^ sign);
  V r = a < whole ? (a + whole) - whole : a;
  if constexpr (to == Rounding::ToZero) {
    r = r > a ? r - T{1} : r;
  } else {
    r = from_bits(bits(r) | sign);
    if constexpr (to == Rounding::Down) r = r > x ? r - T{1} : r;
    if constexpr (to == Rounding::Up) r = r < x ? r + T{1} : r;
  }
  return from_bits(bits(r) | sign);
}

template <Rounding to>
inline VecF rounded(VecF x) {
#if ETX_SIMD_BYTES == 64
  return (VecF)_mm512_roundscale_ps((__m512)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#elif ETX_SIMD_BYTES == 32
  return (VecF)_mm256_round_ps((__m256)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#else
  return rounded<to>(x, uint32_t{0x80000000}, 8388608.0f);
#endif
}
template <Rounding to>
inline VecD rounded(VecD x) {
#if ETX_SIMD_BYTES == 64
  return (VecD)_mm512_roundscale_pd((__m512d)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#elif ETX_SIMD_BYTES == 32
  return (VecD)_mm256_round_pd((__m256d)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#else
  return rounded<to>(x, uint64_t{0x8000000000000000}, 4503599627370496.0);
#endif
}

template <Rounding to, typename T>
inline void round_vectors(const T* x, T* y, size_t n) {
  for (size_t i = 0; i < n; i += kVec<T>) store_vec(y + i, rounded<to>(load_vec(x + i)));
}

template <typename T>
ETX_NOINLINE void round_each(const T* x, T* y, size_t n, Rounding to) {
  const size_t rest = n % kVec<T>, whole = n - rest;
  switch (to) {
    case Rounding::Nearest: round_vectors<Rounding::Nearest>(x, y, whole); break;
    case Rounding::Down: round_vectors<Rounding::Down>(x, y, whole); break;
    case Rounding::Up: round_vectors<Rounding::Up>(x, y, whole); break;
    case Rounding::ToZero: round_vectors<Rounding::ToZero>(x, y, whole); break;
  }
  if (rest == 0) return;
  T last[kVec<T>] = {};
  memcpy(last, x + whole, rest * sizeof(T));
  round_each(last, last, kVec<T>, to);
  memcpy(y + whole, last, rest * sizeof(T));
}

constexpr auto round_float = round_each<float>;
constexpr auto round_double = round_each<double>;

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_WHOLE_H_
