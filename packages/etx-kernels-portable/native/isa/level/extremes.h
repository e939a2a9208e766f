// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_EXTREMES_H_
#define ETX_PORTABLE_LEVEL_EXTREMES_H_

/// The larger and the smaller of float64, int64 and int32, in whole vectors.

#include "isa/level/elements.h"

namespace etx::portable {
namespace {

template <typename T>
size_t clamp_each(const T* x, T low, T high, T* y, size_t n) {
  constexpr size_t step = kVec<T>;
  const Vec<T> l = splat_vec<T>(low), h = splat_vec<T>(high);
  size_t i = 0;
  for (; i + step <= n; i += step) {
    Vec<T> v = load_vec(x + i);
    v = v < l ? l : v;
    store_vec(y + i, v > h ? h : v);
  }
  return i;
}

/// The bits of `flip` change the order: all of an integer, the sign of a float.
template <typename T, typename Bits>
inline Vec<T> flipped(Vec<T> v, Bits flip) {
  Vec<Bits> bits;
  memcpy(&bits, &v, sizeof(bits));
  bits = bits ^ flip;
  memcpy(&v, &bits, sizeof(v));
  return v;
}

template <typename T>
inline Vec<T> larger(Vec<T> a, Vec<T> b) {
  if constexpr (std::is_integral_v<T>) {
    return b > a ? b : a;
  } else {
    return ((b > a) | (b != b)) ? b : a;
  }
}

template <typename T, typename Bits>
size_t extreme_each(const T* x, size_t n, Bits flip, T* best) {
  constexpr size_t step = kVec<T>;
  const Vec<T> start = flipped<T>(load_vec(best), flip);
  constexpr size_t count = ETX_SIMD_BYTES <= 16 ? 2 : 4;
  Vec<T> found[count];
  ETX_UNROLL
  for (size_t u = 0; u < count; ++u) found[u] = start;
  size_t i = 0;
  for (; i + count * step <= n; i += count * step) {
    ETX_UNROLL
    for (size_t u = 0; u < count; ++u) {
      found[u] = larger<T>(found[u], flipped<T>(load_vec(x + i + u * step), flip));
    }
  }
  for (; i + step <= n; i += step) {
    found[0] = larger<T>(found[0], flipped<T>(load_vec(x + i), flip));
  }
  ETX_UNROLL
  for (size_t u = 1; u < count; ++u) found[0] = larger<T>(found[0], found[u]);
  store_vec(best, flipped<T>(found[0], flip));
  return i;
}

size_t larger_long(const int64_t* a, const int64_t* b, uint64_t flip, int64_t* y, size_t n) {
  constexpr size_t step = kVec<int64_t>;
  size_t i = 0;
  for (; i + step <= n; i += step) {
    const auto p = flipped<int64_t>(load_vec(a + i), flip);
    const auto q = flipped<int64_t>(load_vec(b + i), flip);
    store_vec(y + i, flipped<int64_t>(larger<int64_t>(p, q), flip));
  }
  return i;
}

size_t abs_long(const int64_t* x, int64_t* y, size_t n) {
  constexpr size_t step = kVec<uint64_t>;
  size_t i = 0;
  for (; i + step <= n; i += step) {
    Vec<uint64_t> v;
    memcpy(&v, x + i, sizeof(v));
    const Vec<uint64_t> sign = 0 - (v >> 63);
    v = (v ^ sign) - sign;
    memcpy(y + i, &v, sizeof(v));
  }
  return i;
}

constexpr auto clamp_long = clamp_each<int64_t>;
constexpr auto clamp_int = clamp_each<int32_t>;
constexpr auto clamp_double = clamp_each<double>;
constexpr auto extreme_long = extreme_each<int64_t, uint64_t>;
constexpr auto extreme_int = extreme_each<int32_t, uint32_t>;
constexpr auto extreme_double = extreme_each<double, uint64_t>;

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_EXTREMES_H_
