// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ROW_LOOPS_H_
#define ETX_PORTABLE_ROW_LOOPS_H_

/// Loops by the type of their elements: those of Isa where it has them, else plain ones.

#include <cmath>
#include <cstdint>

#include "isa/isa.h"

namespace etx::portable {

/// `f(total, x[i])` for all i in totals that a compiler keeps in vectors, then `join`.
template <typename T, typename F, typename Join>
T in_lanes(const T* x, int64_t n, T start, const F& f, const Join& join) {
  constexpr int kWidth = 64 / static_cast<int>(sizeof(T));
  T totals[kWidth];
  for (T& total : totals) total = start;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int j = 0; j < kWidth; ++j) totals[j] = f(totals[j], x[i + j]);
  }
  for (; i < n; ++i) totals[0] = f(totals[0], x[i]);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) totals[j] = join(totals[j], totals[j + half]);
  }
  return totals[0];
}

/// Up to here, floats are added one by one: that costs less than to call the vector code.
constexpr int64_t kShortRow = 16;

inline float sum(const float* x, int64_t n) {
  if (kIsSmall || n > kShortRow) return isa().sum(x, static_cast<size_t>(n));
  float total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}
inline double sum(const double* x, int64_t n) {
  const auto add = [](double a, double b) { return a + b; };
  return in_lanes(x, n, 0.0, add, add);
}
inline int64_t sum(const int64_t* x, int64_t n) {
  const auto add = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  };
  return in_lanes(x, n, int64_t{0}, add, add);
}

inline void multiply_panel(const Product<float>& p) { isa().product_float(p); }
inline void multiply_panel(const Product<double>& p) { isa().product_double(p); }
inline void multiply_panel(const Product<uint16_t>& p) { isa().product_short(p); }
inline void multiply_panel(const Product<uint32_t>& p) { isa().product_int(p); }
inline void multiply_panel(const Product<uint64_t>& p) { isa().product_long(p); }

/// The sum of (x - center)^2.
inline float sum_squares(const float* x, float center, int64_t n) {
  if (kIsSmall || n > kShortRow) return isa().sum_squares(x, center, static_cast<size_t>(n));
  float total = 0;
  for (int64_t i = 0; i < n; ++i) total += (x[i] - center) * (x[i] - center);
  return total;
}
inline double sum_squares(const double* x, double center, int64_t n) {
  const auto square = [center](double a, double v) { return a + (v - center) * (v - center); };
  return in_lanes(x, n, 0.0, square, [](double a, double b) { return a + b; });
}

/// The sum of x[i] share; rarely called.
template <typename T>
[[gnu::noinline]] double sum_shares(const T* x, int64_t n, double share) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]) * share;
  return total;
}

/// The mean of `count` numbers whose sum is `total`, also where only the sum is too large: then
/// `rows(add)` calls `add(x, n)` for each row of them once more.
template <typename T, typename Rows>
T mean_of(T total, int64_t count, const Rows& rows) {
  const T mean = total / static_cast<T>(count);
  if (std::isfinite(mean) || count == 0) return mean;
  const double share = std::ldexp(1.0, -std::ilogb(static_cast<double>(count)) - 1);
  double shares = 0;
  rows([&](const T* x, int64_t n) { shares += sum_shares(x, n, share); });
  return static_cast<T>(shares / (static_cast<double>(count) * share));
}

/// y = x scale + shift.
inline void affine(const float* x, float scale, float shift, float* y, int64_t n) {
  isa().affine(x, scale, shift, y, static_cast<size_t>(n));
}
inline void affine(const double* x, double scale, double shift, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

/// y = (x - mean) scale + bias, in one step where that has numbers for it.
template <typename T>
void normalize_row(const T* x, T mean, T scale, T bias, T* y, int64_t n) {
  const T shift = bias - mean * scale;
  if (std::isfinite(shift)) return affine(x, scale, shift, y, n);
  affine(x, T{1}, -mean, y, n);
  affine(y, scale, bias, y, n);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ROW_LOOPS_H_
