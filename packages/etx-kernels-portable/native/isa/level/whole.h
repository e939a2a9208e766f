// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WHOLE_H_
#define ETX_PORTABLE_LEVEL_WHOLE_H_

/// Whole numbers near others.

#include "isa/level/doubles.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES >= 32
template <Rounding to>
inline VecF rounded(VecF x) {
#if ETX_SIMD_BYTES == 64
  return (VecF)_mm512_roundscale_ps((__m512)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#else
  return (VecF)_mm256_round_ps((__m256)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#endif
}
template <Rounding to>
inline VecD rounded(VecD x) {
#if ETX_SIMD_BYTES == 64
  return (VecD)_mm512_roundscale_pd((__m512d)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#else
  return (VecD)_mm256_round_pd((__m256d)x, static_cast<int>(to) | _MM_FROUND_NO_EXC);
#endif
}

template <Rounding to, typename T>
inline size_t round_vectors(const T* x, T* y, size_t n) {
  size_t i = 0;
  for (; i + kVec<T> <= n; i += kVec<T>) store_vec(y + i, rounded<to>(load_vec(x + i)));
  return i;
}

template <typename T, typename>
size_t round_each(const T* x, T* y, size_t n, Rounding to) {
  switch (to) {
    case Rounding::Down: return round_vectors<Rounding::Down>(x, y, n);
    case Rounding::Up: return round_vectors<Rounding::Up>(x, y, n);
    case Rounding::ToZero: return round_vectors<Rounding::ToZero>(x, y, n);
    default: return round_vectors<Rounding::Nearest>(x, y, n);
  }
}
#else
/// No bits are left behind the point of a sum as large as `whole`. Zeros keep their sign.
template <typename T, typename Bits>
size_t round_each(const T* x, T* y, size_t n, Rounding to) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  constexpr T whole = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  const Bits kept = to == Rounding::ToZero ? 0 : kSign;
  const T down = to == Rounding::Down || to == Rounding::ToZero ? 1 : 0;
  const T up = to == Rounding::Up ? 1 : 0;
  size_t i = 0;
  for (; i + kVec<T> <= n; i += kVec<T>) {
    const auto v = load_vec(x + i);
    const auto sign = bits(v) & kSign;
    const auto a = from_bits(bits(v) ^ sign), z = from_bits(bits(a) | (sign & kept));
    auto r = a < whole ? (a + whole) - whole : a;
    r = from_bits(bits(r) | (sign & kept));
    r = r > z ? r - down : r;
    r = r < z ? r + up : r;
    store_vec(y + i, from_bits(bits(r) | sign));
  }
  return i;
}
#endif
constexpr auto round_float = round_each<float, uint32_t>;
constexpr auto round_double = round_each<double, uint64_t>;

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_WHOLE_H_
