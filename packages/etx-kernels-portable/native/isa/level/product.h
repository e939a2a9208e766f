// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_PRODUCT_H_
#define ETX_PORTABLE_LEVEL_PRODUCT_H_

/// Products of any numbers: register tiles of a few rows and one panel of 64 bytes.

#include "isa/isa.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

#if defined(ETX_SIMD_VECTORS)
template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(ETX_SIMD_BYTES)));
  typedef T unaligned __attribute__((vector_size(ETX_SIMD_BYTES), aligned(sizeof(T)), may_alias));
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
inline Vec<T> load_vec(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
#else
template <typename T>
using Vec = T;
template <typename T>
inline Vec<T> load_vec(const T* p) {
  return *p;
}
#endif
template <typename T>
constexpr int kVec = static_cast<int>(sizeof(Vec<T>) / sizeof(T));
constexpr int kProductRows = ETX_SIMD_BYTES == 64 ? 8 : (ETX_SIMD_BYTES == 32 ? 4 : 2);

template <typename T, int M>
void product_tile(const Product<T>& p, int64_t row) {
  constexpr int V = static_cast<int>(kPanel<T>) / kVec<T>;
  const T* const a = p.a + row * p.a_stride;
  Vec<T> acc[M][V];
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      acc[i][v] = Vec<T>{} + (p.row_bias == nullptr ? T{0} : p.row_bias[row + i]);
    }
  }
  const T* b = p.panel;
  for (int64_t k = 0; k < p.depth; ++k, b += p.panel_stride) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const Vec<T> bv = load_vec(b + v * kVec<T>);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) acc[i][v] = acc[i][v] + bv * a[i * p.a_stride + k];
    }
  }
  alignas(64) T buffer[kPanel<T>];
  for (int i = 0; i < M; ++i) {
    memcpy(buffer, acc[i], sizeof(buffer));
    T* const to = p.c + (row + i) * p.row_step;
    for (int64_t j = 0; j < p.columns; ++j) to[j * p.column_step] = buffer[j];
  }
}

template <typename T>
inline void product(const Product<T>& p) {
  int64_t row = 0;
  for (; row + kProductRows <= p.rows; row += kProductRows) product_tile<T, kProductRows>(p, row);
  for (; row < p.rows; ++row) product_tile<T, 1>(p, row);
}

template <typename T>
inline T dot(const T* x, const T* w, size_t n) {
  constexpr size_t step = kVec<T>;
  Vec<T> sums[4] = {};
  size_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    ETX_UNROLL
    for (size_t u = 0; u < 4; ++u) {
      sums[u] = sums[u] + load_vec(x + i + u * step) * load_vec(w + i + u * step);
    }
  }
  T lanes[step], total = 0;
  const Vec<T> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  memcpy(lanes, &sum, sizeof(lanes));
  for (size_t j = 0; j < step; ++j) total += lanes[j];
  for (; i < n; ++i) total += x[i] * w[i];
  return total;
}

void product_float(const Product<float>& p) { product(p); }
void product_double(const Product<double>& p) { product(p); }
void product_int(const Product<uint32_t>& p) { product(p); }
void product_long(const Product<uint64_t>& p) { product(p); }
double dot_double(const double* x, const double* w, size_t n) { return dot(x, w, n); }
uint32_t dot_int(const uint32_t* x, const uint32_t* w, size_t n) { return dot(x, w, n); }
uint64_t dot_long(const uint64_t* x, const uint64_t* w, size_t n) { return dot(x, w, n); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_PRODUCT_H_
