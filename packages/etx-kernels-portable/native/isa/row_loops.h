// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ROW_LOOPS_H_
#define ETX_PORTABLE_ROW_LOOPS_H_

/// Loops by the type of their elements: those of Isa where it has them, else plain ones.

#include <cstdint>

#include "isa/isa.h"

namespace etx::portable {

inline float sum(const float* x, int64_t n) { return isa().sum(x, static_cast<size_t>(n)); }
inline double sum(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

inline void multiply_panel(const Product<float>& p) { isa().product_float(p); }
inline void multiply_panel(const Product<double>& p) { isa().product_double(p); }
inline void multiply_panel(const Product<uint16_t>& p) { isa().product_short(p); }
inline void multiply_panel(const Product<uint32_t>& p) { isa().product_int(p); }
inline void multiply_panel(const Product<uint64_t>& p) { isa().product_long(p); }

/// The sum of (x - center)^2.
inline float sum_squares(const float* x, float center, int64_t n) {
  return isa().sum_squares(x, center, static_cast<size_t>(n));
}
inline double sum_squares(const double* x, double center, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += (x[i] - center) * (x[i] - center);
  return total;
}

/// y = x scale + shift.
inline void affine(const float* x, float scale, float shift, float* y, int64_t n) {
  isa().affine(x, scale, shift, y, static_cast<size_t>(n));
}
inline void affine(const double* x, double scale, double shift, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ROW_LOOPS_H_
