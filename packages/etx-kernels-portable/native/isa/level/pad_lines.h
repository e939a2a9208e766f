// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_PAD_LINES_H_
#define ETX_PORTABLE_LEVEL_PAD_LINES_H_

/// Copies lines of images, with room around them and every or every other element.

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
  int64_t i = step == 2 ? copy_even(x, y, n) : 0;
  for (x += i * step; i + 4 <= n; i += 4, x += 4 * step) {
    y[i] = x[0], y[i + 1] = x[step], y[i + 2] = x[2 * step], y[i + 3] = x[3 * step];
  }
  for (; i < n; ++i, x += step) y[i] = *x;
}

void pad_lines(const float* x, int64_t stride, int64_t lines, int64_t left, int64_t count,
               int64_t step, float fill, float* y, int64_t length) {
  for (int64_t line = 0; line < lines; ++line, x += stride, y += length) {
    for (int64_t i = 0; i < left; ++i) y[i] = fill;
    copy_step(x, step, y + left, count);
    for (int64_t i = left + count; i < length; ++i) y[i] = fill;
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_PAD_LINES_H_
