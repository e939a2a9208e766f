// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_PRODUCT_H_
#define ETX_PORTABLE_LEVEL_PRODUCT_H_

/// Products of any numbers: register tiles of a few rows and one panel of 128 bytes.

#include "isa/isa.h"
#include "isa/level/elements.h"
#include "isa/level/row_pointers.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kProductRows = 12;
#elif ETX_SIMD_BYTES == 32 || defined(__aarch64__)
constexpr int kProductRows = 3;
#else
constexpr int kProductRows = 1;
#endif

template <typename T, int M>
void product_tile(const Product<T>& p, int64_t row) {
  constexpr int V = static_cast<int>(kPanel<T>) / kVec<T>;
  const T* const a = p.a + row * p.a_stride;
  Vec<T> acc[M][V];
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    const T bias = p.row_bias == nullptr ? T{0} : p.row_bias[row + i];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) acc[i][v] = splat_vec<T>(bias);
  }
  const RowPointers<T, M> rows(a, p.a_stride);
  const T* b = p.panel;
  for (int64_t k = 0; k < p.depth; ++k, b += p.panel_stride) {
    Vec<T> bv[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) bv[v] = load_vec(b + v * kVec<T>);
    if constexpr (kLanes > 1) {
      prefetch(b + 8 * p.panel_stride);
      prefetch(b + 8 * p.panel_stride + kPanel<T> / 2);
    }
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      const Vec<T> s = splat_vec<T>(rows.at(i, k));
      ETX_UNROLL
      for (int v = 0; v < V; ++v) acc[i][v] = add_product<T>(acc[i][v], bv[v], s);
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

void product_float(const Product<float>& p) { product(p); }
void product_double(const Product<double>& p) { product(p); }
void product_short(const Product<uint16_t>& p) { product(p); }
void product_int(const Product<uint32_t>& p) { product(p); }
void product_long(const Product<uint64_t>& p) { product(p); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_PRODUCT_H_
