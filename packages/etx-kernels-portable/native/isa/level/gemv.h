// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_GEMV_H_
#define ETX_PORTABLE_LEVEL_GEMV_H_

/// Products with few rows: sums along the contiguous depth, nothing packed.

#include "isa/isa.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kDotRows = 4, kDotColumns = 4;
#elif ETX_SIMD_BYTES == 32
constexpr int kDotRows = 2, kDotColumns = 4;
#else
constexpr int kDotRows = 2, kDotColumns = 4;
#endif

/// R rows of x times C rows of w, in U independent sums each.
template <int R, int C>
void dot_tile(const Gemv& d, int64_t row, int64_t column) {
  constexpr int U = R * C >= 8 ? 1 : (R * C >= 4 ? 2 : 4);
  VecF acc[U][R][C];
  ETX_UNROLL
  for (int u = 0; u < U; ++u) {
    ETX_UNROLL
    for (int r = 0; r < R; ++r) {
      ETX_UNROLL
      for (int c = 0; c < C; ++c) acc[u][r][c] = splat(0.0f);
    }
  }
  const float* const x = d.x + row * d.x_stride;
  const float* const w = d.w + column * d.w_stride;
  const auto add = [](VecF(&sum)[R][C], const VecF(&xv)[R], const VecF(&wv)[C]) {
    ETX_UNROLL
    for (int r = 0; r < R; ++r) {
      ETX_UNROLL
      for (int c = 0; c < C; ++c) sum[r][c] = sum[r][c] + xv[r] * wv[c];
    }
  };
  int64_t k = 0;
  VecF xv[R], wv[C];
  for (; k + U * kLanes <= d.depth; k += U * kLanes) {
    ETX_UNROLL
    for (int u = 0; u < U; ++u) {
      ETX_UNROLL
      for (int r = 0; r < R; ++r) xv[r] = load(x + r * d.x_stride + k + u * kLanes);
      ETX_UNROLL
      for (int c = 0; c < C; ++c) wv[c] = load(w + c * d.w_stride + k + u * kLanes);
      add(acc[u], xv, wv);
    }
  }
  for (; k < d.depth; k += kLanes) {
    const int64_t left = d.depth - k;
    const size_t n = static_cast<size_t>(left);
    const bool full = left >= kLanes;
    ETX_UNROLL
    for (int r = 0; r < R; ++r) {
      const float* const p = x + r * d.x_stride + k;
      xv[r] = full ? load(p) : load_part(p, n);
    }
    ETX_UNROLL
    for (int c = 0; c < C; ++c) {
      const float* const p = w + c * d.w_stride + k;
      wv[c] = full ? load(p) : load_part(p, n);
    }
    add(acc[0], xv, wv);
  }
  ETX_UNROLL
  for (int r = 0; r < R; ++r) {
    ETX_UNROLL
    for (int c = 0; c < C; ++c) {
      VecF sum = acc[0][r][c];
      ETX_UNROLL
      for (int u = 1; u < U; ++u) sum = sum + acc[u][r][c];
      const float bias = d.bias == nullptr ? 0.0f : d.bias[column + c];
      d.y[(row + r) * d.y_stride + column + c] = add_lanes(sum) + bias;
    }
  }
}

template <int C>
void dot_columns(const Gemv& d, int64_t column) {
  int64_t row = 0;
  for (; row + kDotRows <= d.rows; row += kDotRows) dot_tile<kDotRows, C>(d, row, column);
  if (kDotRows > 2) {
    for (; row + 2 <= d.rows; row += 2) dot_tile<2, C>(d, row, column);
  }
  for (; row < d.rows; ++row) dot_tile<1, C>(d, row, column);
}

void gemv(const Gemv& d) {
  int64_t column = d.begin;
  for (; column + kDotColumns <= d.end; column += kDotColumns) dot_columns<kDotColumns>(d, column);
  for (; column < d.end; ++column) dot_columns<1>(d, column);
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_GEMV_H_
