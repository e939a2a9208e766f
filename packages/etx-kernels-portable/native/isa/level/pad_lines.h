// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_PAD_LINES_H_
#define ETX_PORTABLE_LEVEL_PAD_LINES_H_

/// Copies lines of images, with room around them and every or every other element.

#include <utility>

#include "isa/level/transpose.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

#if defined(ETX_HAS_SHUFFLE)
inline VecF even_lanes(VecF a, VecF b) {
#if ETX_SIMD_BYTES == 64
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif ETX_SIMD_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

inline VecF odd_lanes(VecF a, VecF b) {
#if ETX_SIMD_BYTES == 64
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif ETX_SIMD_BYTES == 32
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

#if ETX_SIMD_BYTES == 32
/// The same of `room` floats, at least 1, behind x: those with even numbers; then every third one.
inline VecF even_part(const float* x, size_t room) {
  constexpr size_t lanes = kLanes;
  const VecF low = load_part(x, room < lanes ? room : lanes);
  return even_lanes(low, room > lanes ? load_part(x + kLanes, room - lanes) : splat(0.0f));
}
inline VecF third_lanes(VecF a, VecF b, VecF c) {
  const VecF ab = __builtin_shufflevector(a, b, 0, 9, 2, 3, 12, 5, 6, 15);
  const VecF all = __builtin_shufflevector(ab, c, 0, 1, 10, 3, 4, 13, 6, 7);
  return __builtin_shufflevector(all, all, 0, 3, 6, 1, 4, 7, 2, 5);
}
inline VecF third_part(const float* x, size_t room) {
  constexpr size_t lanes = kLanes;
  const auto part = [&](size_t begin) {
    if (room <= begin) return splat(0.0f);
    return load_part(x + begin, room - begin < lanes ? room - begin : lanes);
  };
  return third_lanes(part(0), part(lanes), part(2 * lanes));
}

/// y[i] = x[i * step] for a step of 2 or 3. A vector of which more floats are read than needed is
/// not the last one.
template <int step>
ETX_NOINLINE void copy_spread(const float* x, float* y, int64_t n) {
  const auto part = [&](int64_t i, int64_t count) {
    const auto room = static_cast<size_t>(step * (count - 1) + 1);
    return step == 2 ? even_part(x + step * i, room) : third_part(x + step * i, room);
  };
  if (n < kLanes) {
    if (n > 0) store_part(y, part(0, n), static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i + kLanes < n; i += kLanes) {
    const float* const from = x + step * i;
    const VecF low = load(from), high = load(from + kLanes);
    if constexpr (step == 2) {
      store(y + i, even_lanes(low, high));
    } else {
      store(y + i, third_lanes(low, high, load(from + 2 * kLanes)));
    }
  }
  store(y + n - kLanes, part(n - kLanes, kLanes));
}
#endif

/// The second vector ends one float behind the last one needed: it is read only where there is
/// another element to come.
inline int64_t copy_even(const float* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes < n; i += kLanes) {
    store(y + i, even_lanes(load(x + 2 * i), load(x + 2 * i + kLanes)));
  }
  if (kLanes < 8 || i >= n) return i;
  const auto left = static_cast<size_t>(n - i), lanes = static_cast<size_t>(kLanes);
  const size_t room = 2 * left - 1;
  const VecF low = load_part(x + 2 * i, room < lanes ? room : lanes);
  const VecF high = room > lanes ? load_part(x + 2 * i + kLanes, room - lanes) : splat(0.0f);
  store_part(y + i, even_lanes(low, high), left);
  return n;
}

inline void copy_line(const float* x, float* y, int64_t n) {
  if (ETX_SIMD_BYTES == 64 && n <= kLanes) {
    store_part(y, load_part(x, static_cast<size_t>(n)), static_cast<size_t>(n));
  } else if (n >= kLanes) {
    for (int64_t i = 0; i + kLanes < n; i += kLanes) store(y + i, load(x + i));
    store(y + n - kLanes, load(x + n - kLanes));
  } else if (n >= 4) {
    for (int64_t i = 0; i + 4 < n; i += 4) store4(y + i, load4(x + i));
    store4(y + n - 4, load4(x + n - 4));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  }
}
#else
inline int64_t copy_even(const float*, float*, int64_t) { return 0; }

inline void copy_line(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}
#endif

/// y[i] = x[i * step].
inline void copy_step(const float* x, int64_t step, float* y, int64_t n) {
  if (step == 1) return copy_line(x, y, n);
#if ETX_SIMD_BYTES == 32
  if (step == 2 && n >= 4) return copy_spread<2>(x, y, n);
  if (step == 3 && n >= 4) return copy_spread<3>(x, y, n);
#endif
  const bool by_vectors = ETX_SIMD_BYTES != 32 && step == 2;
  int64_t i = by_vectors ? copy_even(x, y, n) : 0;
  for (x += i * step; i + 4 <= n; i += 4, x += 4 * step) {
    y[i] = x[0], y[i + 1] = x[step], y[i + 2] = x[2 * step], y[i + 3] = x[3 * step];
  }
  for (; i < n; ++i, x += step) y[i] = *x;
}

void pad_lines(const float* x, int64_t stride, int64_t lines, int64_t left, int64_t count,
               int64_t step, float fill, float* y, int64_t length) {
  constexpr bool kFills = ETX_SIMD_BYTES == 32;  // All at once: most lines are short.
  int64_t filled = kFills && count == length ? lines * length : 0;
  for (; kFills && filled + kLanes <= lines * length; filled += kLanes) {
    store(y + filled, splat(fill));
  }
  for (; kFills && filled < lines * length; ++filled) y[filled] = fill;
  for (int64_t line = 0; line < lines; ++line, x += stride, y += length) {
    for (int64_t i = 0; !kFills && i < left; ++i) y[i] = fill;
    copy_step(x, step, y + left, count);
    for (int64_t i = left + count; !kFills && i < length; ++i) y[i] = fill;
  }
}

#if ETX_SIMD_BYTES == 32
/// Two or three phases: a vector of each is permuted to the lanes where its elements are kept, of
/// which each vector of y takes its own.
template <int kPhases>
inline void join_vectors(const float* x, int64_t stride, int64_t n, float* y) {
  VecI at[kPhases], is_of[kPhases];
  for (int l = 0; l < kLanes; ++l) {
    for (int v = 0; v < kPhases; ++v) is_of[v][l] = l % kPhases == v ? -1 : 0;
    for (int p = 0; p < kPhases; ++p) {
      at[p][l] = kPhases == 2 ? l / 2 : 3 * (l + kLanes - p) % kLanes;
    }
  }
  const auto permuted = [](VecF v, VecI lanes) {
    return (VecF)_mm256_permutevar8x32_ps((__m256)v, (__m256i)lanes);
  };
  for (int64_t left = n; left > 0; left -= kPhases * kLanes, x += kLanes, y += kPhases * kLanes) {
    VecF v[kPhases], made[kPhases];
    ETX_UNROLL
    for (int p = 0; p < kPhases; ++p) v[p] = permuted(load(x + p * stride), at[p]);
    if constexpr (kPhases == 2) {
      made[0] = is_of[0] ? v[0] : v[1];
      const VecI upper = at[0] + kLanes / 2;
      made[1] = is_of[0] ? permuted(load(x), upper) : permuted(load(x + stride), upper);
    } else {
      ETX_UNROLL
      for (int o = 0; o < kPhases; ++o) {
        const int p = o * kLanes % kPhases;
        const VecF rest = is_of[1] ? v[(p + 1) % kPhases] : v[(p + 2) % kPhases];
        made[o] = is_of[0] ? v[p] : rest;
      }
    }
    ETX_UNROLL
    for (int o = 0; o < kPhases; ++o) {
      const int64_t rest = left - o * kLanes;
      if (rest >= kLanes) {
        store(y + o * kLanes, made[o]);
      } else if (rest > 0) {
        store_part(y + o * kLanes, made[o], static_cast<size_t>(rest));
      }
    }
  }
}
#endif

#if defined(ETX_HAS_SHUFFLE) && ETX_SIMD_BYTES != 32
/// The first halves of two vectors, in turns, and the second halves.
inline VecF join_first(VecF a, VecF b) {
#if ETX_SIMD_BYTES == 64
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
inline VecF join_second(VecF a, VecF b) {
#if ETX_SIMD_BYTES == 64
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

inline void join_pairs(const float* x, int64_t stride, int64_t n, float* y) {
  for (int64_t left = n; left > 0; left -= 2 * kLanes, x += kLanes, y += 2 * kLanes) {
    const VecF a = load(x), b = load(x + stride);
    const VecF first = join_first(a, b), second = join_second(a, b);
    const auto rest = static_cast<size_t>(left % kLanes);
    if (left >= kLanes) store(y, first);
    if (left >= 2 * kLanes) {
      store(y + kLanes, second);
    } else if (rest > 0) {
      store_part(left >= kLanes ? y + kLanes : y, left >= kLanes ? second : first, rest);
    }
  }
}
#endif

#if defined(ETX_HAS_SHUFFLE) && ETX_SIMD_BYTES == 64
/// Part `kPart` of the elements of three vectors in turns: those of `a` and `b`, then those of `c`.
template <int kPart, int... kLane>
inline VecF join_part(VecF a, VecF b, VecF c, std::integer_sequence<int, kLane...>) {
  constexpr int kFirst = kPart * kLanes;
  const VecF two = __builtin_shufflevector(
      a, b, ((kFirst + kLane) % 3 == 1 ? kLanes : 0) + (kFirst + kLane) / 3 ...);
  return __builtin_shufflevector(
      two, c, (kFirst + kLane) % 3 == 2 ? kLanes + (kFirst + kLane) / 3 : kLane...);
}

inline void join_triples(const float* x, int64_t stride, int64_t n, float* y) {
  for (int64_t left = n; left > 0; left -= 3 * kLanes, x += kLanes, y += 3 * kLanes) {
    const VecF a = load(x), b = load(x + stride), c = load(x + 2 * stride);
    constexpr std::make_integer_sequence<int, kLanes> kAll;
    const VecF made[] = {join_part<0>(a, b, c, kAll), join_part<1>(a, b, c, kAll),
                         join_part<2>(a, b, c, kAll)};
    for (int o = 0; o < 3 && left > o * kLanes; ++o) {
      const int64_t rest = left - o * kLanes;
      store_part(y + o * kLanes, made[o], static_cast<size_t>(rest < kLanes ? rest : kLanes));
    }
  }
}
#endif

void join_line(const float* x, int64_t stride, int64_t phases, int64_t n, float* y) {
#if defined(ETX_HAS_SHUFFLE) && ETX_SIMD_BYTES != 32
  if (phases == 2) return join_pairs(x, stride, n, y);
#endif
#if defined(ETX_HAS_SHUFFLE) && ETX_SIMD_BYTES == 64
  if (phases == 3) return join_triples(x, stride, n, y);
#endif
#if ETX_SIMD_BYTES == 32
  if (phases == 2) return join_vectors<2>(x, stride, n, y);
  if (phases == 3) return join_vectors<3>(x, stride, n, y);
#endif
  for (int64_t i = 0; i < n; ++i) y[i] = x[i % phases * stride + i / phases];
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_PAD_LINES_H_
