// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_LOOPS_H_
#define ETX_PORTABLE_LEVEL_LOOPS_H_

/// Elementwise loops and reductions of the `Isa` table.

#include "isa/simd.h"
#include "isa/vector_math.h"

#if defined(__GNUC__)
#define ETX_SQRTF __builtin_sqrtf
#else
#include <math.h>
#define ETX_SQRTF sqrtf
#endif

namespace etx::portable {
namespace {

constexpr size_t kStep = kLanes;
inline VecF vec_relu(VecF x);
inline VecF vec_add(VecF a, VecF b);
/// Floats that the cheapest loops, mostly over what a product has just left, fetch ahead:
/// processors do that within a page only.
constexpr size_t kAhead = 1536;

template <VecF (*f)(VecF)>
void unary(const float* x, float* y, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    if constexpr (kStep == 8 && f == vec_relu) prefetch(x + i + kAhead);
    store(y + i, f(load(x + i)));
  }
  if (i < n) store_part(y + i, f(load_part(x + i, n - i)), n - i);
}

template <VecF (*f)(VecF, VecF)>
void binary(const float* a, const float* b, float* y, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    if constexpr (kStep == 8 && f == vec_add) prefetch(a + i + kAhead), prefetch(b + i + kAhead);
    store(y + i, f(load(a + i), load(b + i)));
  }
  if (i < n) store_part(y + i, f(load_part(a + i, n - i), load_part(b + i, n - i, 1)), n - i);
}

template <VecF (*f)(VecF, VecF)>
void with_scalar(const float* a, float b, float* y, size_t n) {
  const VecF s = splat(b);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) store(y + i, f(load(a + i), s));
  if (i < n) store_part(y + i, f(load_part(a + i, n - i, 1), s), n - i);
}

inline VecF square_root(VecF x) {
  float t[kLanes];
  store(t, x);
  ETX_UNROLL
  for (int i = 0; i < kLanes; ++i) t[i] = ETX_SQRTF(t[i]);
  return load(t);
}

inline VecF vec_abs(VecF x) { return from_bits(bits(x) & 0x7fffffffu); }
inline VecF vec_neg(VecF x) { return -x; }
inline VecF vec_relu(VecF x) { return x < 0.0f ? splat(0.0f) : x; }
inline VecF zero_to_six(VecF x) {
  const VecF low = x < 0.0f ? splat(0.0f) : x;
  return low > 6.0f ? splat(6.0f) : low;
}
inline VecF vec_hardsigmoid(VecF x) { return zero_to_six(x + 3.0f) / 6.0f; }
inline VecF vec_hardswish(VecF x) { return x * zero_to_six(x + 3.0f) / 6.0f; }
inline VecF vec_reciprocal(VecF x) { return 1.0f / x; }
inline VecF vec_rsqrt(VecF x) { return 1.0f / square_root(x); }
inline VecF vec_square(VecF x) { return x * x; }
inline VecF vec_add(VecF a, VecF b) { return a + b; }
inline VecF vec_sub(VecF a, VecF b) { return a - b; }
inline VecF vec_mul(VecF a, VecF b) { return a * b; }
inline VecF vec_div(VecF a, VecF b) { return a / b; }
inline VecF vec_rsub(VecF a, VecF b) { return b - a; }
inline VecF vec_rdiv(VecF a, VecF b) { return b / a; }
inline VecF vec_maximum(VecF a, VecF b) {
  const VecF m = a > b ? a : b;
  return a != a ? a : m;
}
inline VecF vec_minimum(VecF a, VecF b) {
  const VecF m = a < b ? a : b;
  return a != a ? a : m;
}

void add_scaled(const float* a, const float* b, float scale, float* y, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) store(y + i, load(a + i) + load(b + i) * scale);
  for (; i < n; ++i) y[i] = a[i] + b[i] * scale;
}

void affine(const float* x, float scale, float shift, float* y, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) store(y + i, load(x + i) * scale + shift);
  for (; i < n; ++i) y[i] = x[i] * scale + shift;
}

void clamp(const float* x, float low, float high, float* y, size_t n) {
  const VecF l = splat(low), h = splat(high);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    VecF v = load(x + i);
    v = v < l ? l : v;
    store(y + i, v > h ? h : v);
  }
  for (; i < n; ++i) {
    const float v = x[i] < low ? low : x[i];
    y[i] = v > high ? high : v;
  }
}

/// Folds `n` values with four independent accumulators; `part` combines an accumulator with loaded
/// values, `join` two accumulators.
template <class Part, class Join>
inline VecF fold(const float* x, size_t n, VecF start, float fill, Part part, Join join) {
  if (n < kStep) return part(start, load_part(x, n, fill));
  VecF acc[4] = {start, start, start, start};
  size_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    ETX_UNROLL
    for (size_t u = 0; u < 4; ++u) acc[u] = part(acc[u], load(x + i + u * kStep));
  }
  for (; i + kStep <= n; i += kStep) acc[0] = part(acc[0], load(x + i));
  if (i < n) acc[1] = part(acc[1], load_part(x + i, n - i, fill));
  return join(join(acc[0], acc[1]), join(acc[2], acc[3]));
}

float sum(const float* x, size_t n) {
  return add_lanes(fold(x, n, splat(0.0f), 0.0f, vec_add, vec_add));
}

size_t add_rows(const float* x, int64_t stride, int64_t rows, float* total, size_t n) {
  size_t j = 0;
  for (; j + 4 * kStep <= n; j += 4 * kStep) {
    VecF acc[4];
    ETX_UNROLL
    for (size_t u = 0; u < 4; ++u) acc[u] = load(total + j + u * kStep);
    const float* row = x + j;
    for (int64_t r = 0; r < rows; ++r, row += stride) {
      ETX_UNROLL
      for (size_t u = 0; u < 4; ++u) acc[u] = acc[u] + load(row + u * kStep);
    }
    ETX_UNROLL
    for (size_t u = 0; u < 4; ++u) store(total + j + u * kStep, acc[u]);
  }
  return j;
}

float sum_squares(const float* x, float center, size_t n) {
  const VecF c = splat(center);
  return add_lanes(fold(
      x, n, splat(0.0f), center,
      [c](VecF a, VecF v) {
        const VecF d = v - c;
        return a + d * d;
      },
      vec_add));
}

/// NaN anywhere gives NaN: it loses no comparison and is never replaced.
inline VecF max_with_nan(VecF a, VecF b) { return b != b ? b : largest(a, b); }
inline VecF negated_max_with_nan(VecF a, VecF b) { return max_with_nan(a, -b); }

inline float infinity() {
  const uint32_t pattern = 0x7f800000u;
  float f;
  memcpy(&f, &pattern, sizeof(f));
  return f;
}

float max(const float* x, size_t n) {
  const float lowest = -infinity();
  return max_lanes(fold(x, n, splat(lowest), lowest, max_with_nan, max_with_nan));
}

float min(const float* x, size_t n) {
  const float lowest = -infinity();
  return -max_lanes(fold(x, n, splat(lowest), -lowest, negated_max_with_nan, max_with_nan));
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_LOOPS_H_
