// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_
#define ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_

/// Products of float rows and packed weights, which become floats in registers.

#include "isa/integer/level/product.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kFloatRows = 12;
#elif ETX_SIMD_BYTES == 32
constexpr int kFloatRows = 4;
#elif ETX_SIMD_BYTES == 16
constexpr int kFloatRows = 2;
#else
constexpr int kFloatRows = 1;
#endif

/// sum + a * b, rounded once where the processor can.
inline VecF add_product(VecF sum, VecF a, VecF b) {
#if ETX_SIMD_BYTES == 64
  return (VecF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif ETX_SIMD_BYTES == 32
  return (VecF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(ETX_SIMD_VECTORS) && defined(__aarch64__)
  return (VecF)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  return sum + a * b;
#endif
}

template <int i>
inline VecF byte_as_float(VecI bytes) {
  return to_floats(byte_of<i>(bytes));
}

template <int M, int V, int i>
inline void add_depth(VecF (&sums)[M][V], const FloatProduct& p, int64_t row, int64_t k,
                      const VecI (&bytes)[V]) {
  VecF w[V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) w[v] = byte_as_float<i>(bytes[v]);
  ETX_UNROLL
  for (int m = 0; m < M; ++m) {
    const VecF a = splat(p.x[(row + m) * p.x_stride + k + i]);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) sums[m][v] = add_product(sums[m][v], a, w[v]);
  }
}

template <int M, int V>
inline void add_block(VecF (&sums)[M][V], const FloatProduct& p, int64_t row, int64_t k,
                      const VecI (&bytes)[V]) {
  add_depth<M, V, 0>(sums, p, row, k, bytes);
  add_depth<M, V, 1>(sums, p, row, k, bytes);
  add_depth<M, V, 2>(sums, p, row, k, bytes);
  add_depth<M, V, 3>(sums, p, row, k, bytes);
}

template <int M, int V, bool int4>
void float_tile(const FloatProduct& p, const int8_t* weight, int64_t block_stride,
                const Place& at) {
  VecF totals[M][V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) {
    ETX_UNROLL
    for (int m = 0; m < M; ++m) totals[m][v] = splat(0.0f);
  }
  for (int64_t g = 0; g < p.groups; ++g) {
    VecF sums[M][V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      ETX_UNROLL
      for (int m = 0; m < M; ++m) sums[m][v] = splat(0.0f);
    }
    const int64_t begin = g * p.group_steps;
    const int64_t end = begin + p.group_steps < p.steps ? begin + p.group_steps : p.steps;
    for (int64_t k = begin; k < end; k += int4 ? 2 : 1) {
      const Columns<V> columns(weight + (int4 ? k / 2 : k) * kBlockBytes, block_stride);
      if constexpr (int4) {
        VecI part[V];
        ETX_UNROLL
        for (int v = 0; v < V; ++v) part[v] = low_nibbles(columns.bytes[v]);
        add_block<M, V>(sums, p, at.row, k * kBlockDepth, part);
        ETX_UNROLL
        for (int v = 0; v < V; ++v) part[v] = high_nibbles(columns.bytes[v]);
        add_block<M, V>(sums, p, at.row, (k + 1) * kBlockDepth, part);
      } else {
        add_block<M, V>(sums, p, at.row, k * kBlockDepth, columns.bytes);
      }
    }
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t n = at.columns - v * kLanes;
      if (n <= 0) break;
      const VecF scale = load_up_to(p.scale + g * p.group_stride + at.column + v * kLanes, n);
      ETX_UNROLL
      for (int m = 0; m < M; ++m) totals[m][v] = add_product(totals[m][v], sums[m][v], scale);
    }
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) {
    const int64_t n = at.columns - v * kLanes;
    if (n <= 0) break;
    const int64_t column = at.column + v * kLanes;
    const VecF bias = p.bias == nullptr ? splat(0.0f) : load_up_to(p.bias + column, n);
    ETX_UNROLL
    for (int m = 0; m < M; ++m) {
      const VecF y = smallest(largest(totals[m][v] + bias, splat(p.least)), splat(p.most));
      store_up_to(p.y + (at.row + m) * p.y_stride + column, y, n);
    }
  }
}

template <bool int4, int M = kFloatRows>
inline void run_float_rows(int64_t rows, const FloatProduct& p, const int8_t* weight,
                           int64_t block_stride, const Place& at) {
  if (rows == M) {
    float_tile<M, kParts, int4>(p, weight, block_stride, at);
  } else if constexpr (M > 1) {
    run_float_rows<int4, M - 1>(rows, p, weight, block_stride, at);
  }
}

template <bool int4>
void run_weight_only(const FloatProduct& p) {
  const int64_t block_stride = (int4 ? p.steps / 2 : p.steps) * kBlockBytes;
  const int64_t tiles = (p.num_rows + kFloatRows - 1) / kFloatRows;
  for (int64_t block = p.begin; block < p.end; ++block) {
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t first = i * p.num_rows / tiles, last = (i + 1) * p.num_rows / tiles;
      const Place at = {first, block * kBlockColumns, p.columns - block * kBlockColumns};
      run_float_rows<int4>(last - first, p, p.weight + block * block_stride, block_stride, at);
    }
  }
}

void weight_only(const FloatProduct& p) { run_weight_only<false>(p); }
void weight_only_int4(const FloatProduct& p) { run_weight_only<true>(p); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_
