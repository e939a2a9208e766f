// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_ROWS_H_
#define ETX_PORTABLE_LEVEL_ROWS_H_

/// Softmax and normalisation of one contiguous row.

#include "isa/level/loops.h"

namespace etx::portable {
namespace {

/// y = exp(x - m); returns the sum.
inline float exp_row(const float* x, float m, float* y, size_t n) {
  VecF acc[2] = {splat(0.0f), splat(0.0f)};
  size_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    ETX_UNROLL
    for (size_t u = 0; u < 2; ++u) {
      const VecF e = exp_of_negative(load(x + i + u * kStep) - m);
      acc[u] = acc[u] + e;
      store(y + i + u * kStep, e);
    }
  }
  for (; i + kStep <= n; i += kStep) {
    const VecF e = exp_of_negative(load(x + i) - m);
    acc[0] = acc[0] + e;
    store(y + i, e);
  }
  if (i < n) {
    const VecF e = exp_of_negative(load_part(x + i, n - i, -infinity()) - m);
    acc[1] = acc[1] + e;
    store_part(y + i, e, n - i);
  }
  return add_lanes(acc[0] + acc[1]);
}

/// Sum of exp(x - m).
inline float sum_exp(const float* x, float m, size_t n) {
  return add_lanes(fold(
      x, n, splat(0.0f), -infinity(), [m](VecF a, VecF v) { return a + exp_of_negative(v - m); },
      vec_add));
}

/// A row that V registers hold, of more than V - 2 vectors: nothing that was stored is read again.
template <size_t V>
inline void softmax_short(const float* x, float* y, size_t n) {
  const auto part = [n](size_t u) {
    const size_t begin = u * kStep;
    return n <= begin ? 0 : n - begin < kStep ? n - begin : kStep;
  };
  VecF v[V], top = splat(-infinity()), total = splat(0.0f);
  ETX_UNROLL
  for (size_t u = 0; u < V; ++u) {
    v[u] = u + 2 < V ? load(x + u * kStep) : load_part(x + u * kStep, part(u), -infinity());
    top = max_with_nan(top, v[u]);
  }
  const float m = max_lanes(top);
  ETX_UNROLL
  for (size_t u = 0; u < V; ++u) v[u] = exp_of_negative(v[u] - m), total = total + v[u];
  const float s = 1.0f / add_lanes(total);
  ETX_UNROLL
  for (size_t u = 0; u < V; ++u) {
    if (u + 2 < V) {
      store(y + u * kStep, v[u] * s);
    } else {
      store_part(y + u * kStep, v[u] * s, part(u));
    }
  }
}

void softmax_row(const float* x, float* y, size_t n) {
  if constexpr (kStep >= 8) {
    if (n <= 2 * kStep) return softmax_short<2>(x, y, n);
    if (n <= 4 * kStep) return softmax_short<4>(x, y, n);
  }
  const float s = 1.0f / exp_row(x, max(x, n), y, n);
  with_scalar<vec_mul>(y, s, y, n);
}

void log_softmax_rows(const float* x, float* y, size_t n, size_t rows) {
  constexpr size_t kRows = 16;
  float top[kRows], log_sum[kRows];
  for (; rows > 0; x += kRows * n, y += kRows * n) {
    const size_t count = rows < kRows ? rows : kRows;
    for (size_t r = 0; r < count; ++r) {
      top[r] = max(x + r * n, n);
      log_sum[r] = sum_exp(x + r * n, top[r], n);
    }
    unary<log>(log_sum, log_sum, count);
    for (size_t r = 0; r < count; ++r) {
      const float* const from = x + r * n;
      const float m = top[r], l = log_sum[r];
      float* const to = y + r * n;
      size_t i = 0;
      for (; i + kStep <= n; i += kStep) store(to + i, load(from + i) - m - l);
      if (i < n) store_part(to + i, load_part(from + i, n - i) - m - l, n - i);
    }
    rows -= count;
  }
}

template <bool has_weight, bool has_bias>
void scale_row_as(const float* x, float mean, float rstd, const float* weight, const float* bias,
                  float* y, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    VecF v = (load(x + i) - mean) * rstd;
    if (has_weight) v = v * load(weight + i);
    if (has_bias) v = v + load(bias + i);
    store(y + i, v);
  }
  for (; i < n; ++i) {
    float v = (x[i] - mean) * rstd;
    if (has_weight) v = v * weight[i];
    if (has_bias) v = v + bias[i];
    y[i] = v;
  }
}

void scale_row(const float* x, float mean, float rstd, const float* weight, const float* bias,
               float* y, size_t n) {
  if (weight != nullptr && bias != nullptr) {
    scale_row_as<true, true>(x, mean, rstd, weight, bias, y, n);
  } else if (weight != nullptr) {
    scale_row_as<true, false>(x, mean, rstd, weight, bias, y, n);
  } else if (bias != nullptr) {
    scale_row_as<false, true>(x, mean, rstd, weight, bias, y, n);
  } else {
    scale_row_as<false, false>(x, mean, rstd, weight, bias, y, n);
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_ROWS_H_
