// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_GEMV_H_
#define ETX_PORTABLE_LEVEL_GEMV_H_

/// Products with few rows, nothing packed: dots along a contiguous depth, sums of rows.

#include <type_traits>

#include "isa/isa.h"
#include "isa/level/elements.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kDotRows = 4, kDotColumns = 4;
#else
constexpr int kDotRows = 2, kDotColumns = 4;
#endif

#if defined(__OPTIMIZE_SIZE__)
constexpr bool kSmallDots = true;
#else
constexpr bool kSmallDots = false;
#endif

/// R rows of x times C rows of w, in U independent sums each: with four a processor runs so far
/// ahead of one row that its own fetching from memory falls behind.
template <typename E, int R, int C>
ETX_NOINLINE void dot_tile(const Dots<typename E::type>& d, int64_t row, int64_t column) {
  using T = typename E::type;
  constexpr int U = R * C >= 8 || kSmallDots ? 1 : 2, L = kVec<T>;
  Vec<T> acc[U][R][C] = {};
  const T* const x = d.x + row * d.x_stride;
  const auto* const w = static_cast<const typename E::element*>(d.w) + column * d.w_stride;
  const auto add = [](Vec<T>(&sum)[R][C], const Vec<T>(&xv)[R], const Vec<T>(&wv)[C]) {
    ETX_UNROLL
    for (int r = 0; r < R; ++r) {
      ETX_UNROLL
      for (int c = 0; c < C; ++c) sum[r][c] = add_product<T>(sum[r][c], xv[r], wv[c]);
    }
  };
  // Beside hints processors fetch less of float32 than without them.
  constexpr bool fetches = kLanes > 4 && !std::is_same_v<E, Same<float>>;
  constexpr int64_t kAhead = fetches ? 4096 / sizeof(typename E::element) : 0;
  const int64_t ahead = C * d.w_stride < kAhead ? kAhead : C * d.w_stride;
  int64_t k = 0;
  Vec<T> xv[R], wv[C];
  for (; k + U * L <= d.depth; k += U * L) {
    ETX_UNROLL
    for (int u = 0; u < U; ++u) {
      ETX_UNROLL
      for (int r = 0; r < R; ++r) xv[r] = load_vec(x + r * d.x_stride + k + u * L);
      ETX_UNROLL
      for (int c = 0; c < C; ++c) {
        const auto* const p = w + c * d.w_stride + k + u * L;
        wv[c] = E::load(p);
        if constexpr (kAhead != 0) prefetch(p + ahead);
      }
      add(acc[u], xv, wv);
    }
  }
  for (; k < d.depth; k += L) {
    const int64_t left = d.depth - k;
    const size_t n = static_cast<size_t>(left);
    const bool full = left >= L;
    ETX_UNROLL
    for (int r = 0; r < R; ++r) {
      const T* const p = x + r * d.x_stride + k;
      xv[r] = full ? load_vec(p) : load_first<Same<T>>(p, n);
    }
    ETX_UNROLL
    for (int c = 0; c < C; ++c) {
      const auto* const p = w + c * d.w_stride + k;
      wv[c] = full ? E::load(p) : load_first<E>(p, n);
    }
    add(acc[0], xv, wv);
  }
  ETX_UNROLL
  for (int r = 0; r < R; ++r) {
    T* const y = d.y + (row + r) * d.y_stride + column;
    const T* const bias = d.bias == nullptr ? nullptr : d.bias + column;
    ETX_UNROLL
    for (int c = 0; c < C; ++c) {
      ETX_UNROLL
      for (int u = 1; u < U; ++u) acc[0][r][c] = add_vec<T>(acc[0][r][c], acc[u][r][c]);
    }
    if constexpr (C % 4 == 0 && std::is_same_v<T, float>) {
      ETX_UNROLL
      for (int c = 0; c < C; c += 4) {
        const VecF sums[4] = {acc[0][r][c], acc[0][r][c + 1], acc[0][r][c + 2], acc[0][r][c + 3]};
        store_four_sums(sums, bias == nullptr ? nullptr : bias + c, y + c);
      }
    } else {
      ETX_UNROLL
      for (int c = 0; c < C; ++c) {
        y[c] = static_cast<T>(add_all<T>(acc[0][r][c]) + (bias == nullptr ? T{0} : bias[c]));
      }
    }
  }
}

template <typename E, int C>
void dot_columns(const Dots<typename E::type>& d, int64_t column) {
  int64_t row = 0;
  if constexpr (C > 1 || std::is_same_v<E, Same<float>>) {
    for (; row + kDotRows <= d.rows; row += kDotRows) dot_tile<E, kDotRows, C>(d, row, column);
  }
  if constexpr (kDotRows > 2 && std::is_same_v<E, Same<float>>) {
    for (; row + 2 <= d.rows; row += 2) dot_tile<E, 2, C>(d, row, column);
  }
  for (; row < d.rows; ++row) dot_tile<E, 1, C>(d, row, column);
}

template <typename E>
inline void dots(const Dots<typename E::type>& d) {
  int64_t column = d.begin;
  if constexpr (std::is_same_v<E, Same<float>> && !kSmallDots) {
    // One row of x leaves registers for more streams of w; what comes from behind the second cache
    // comes faster one after the other.
    constexpr int kStreams = 8;
    constexpr int64_t kNear = 1 << 18;
    const bool streams = (d.end - d.begin) * d.w_stride <= kNear;
    for (; d.rows == 1 && streams && column + kStreams <= d.end; column += kStreams) {
      dot_tile<E, 1, kStreams>(d, 0, column);
    }
    for (; d.rows == 1 && !streams && column < d.end; ++column) dot_tile<E, 1, 1>(d, 0, column);
  }
  for (; column + kDotColumns <= d.end; column += kDotColumns) {
    dot_columns<E, kDotColumns>(d, column);
  }
  for (; column < d.end; ++column) dot_columns<E, 1>(d, column);
}

void gemv(const Gemv& d) { dots<Same<float>>(d); }
void dots_half(const Dots<float>& d) { dots<OfHalf>(d); }
void dots_bfloat16(const Dots<float>& d) { dots<OfBfloat16>(d); }
void dots_double(const Dots<double>& d) { dots<Same<double>>(d); }
void dots_int(const Dots<uint32_t>& d) { dots<Same<uint32_t>>(d); }
void dots_byte(const Dots<uint16_t>& d) { dots<OfByte>(d); }
void dots_long(const Dots<uint64_t>& d) { dots<Same<uint64_t>>(d); }

/// Adds D rows of b, times what stands before them in M rows of a, to y.
template <typename E, int M, int D>
ETX_NOINLINE void accumulate_tile(const Accumulation<typename E::type>& d, int64_t row, int64_t k) {
  using T = typename E::type;
  constexpr int L = kVec<T>;
  const T* const a = d.a + row * d.a_stride + k;
  const auto* const b = static_cast<const typename E::element*>(d.b) + k * d.b_stride;
  T* const y = d.y + row * d.y_stride;
  Vec<T> factor[M][D];
  for (int i = 0; i < M; ++i) {
    for (int l = 0; l < D; ++l) factor[i][l] = splat_vec<T>(a[i * d.a_stride + l]);
  }
  int64_t j = 0;
  for (; j + L <= d.columns; j += L) {
    Vec<T> sum[M];
    ETX_UNROLL
    for (int i = 0; i < M; ++i) sum[i] = load_vec(y + i * d.y_stride + j);
    ETX_UNROLL
    for (int l = 0; l < D; ++l) {
      const Vec<T> v = E::load(b + l * d.b_stride + j);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) sum[i] = add_product<T>(sum[i], v, factor[i][l]);
    }
    ETX_UNROLL
    for (int i = 0; i < M; ++i) store_vec(y + i * d.y_stride + j, sum[i]);
  }
  if (j == d.columns) return;
  const auto left = static_cast<size_t>(d.columns - j);
  for (int i = 0; i < M; ++i) {
    T* const to = y + i * d.y_stride + j;
    Vec<T> sum = load_first<Same<T>>(to, left);
    for (int l = 0; l < D; ++l) {
      sum = add_product<T>(sum, load_first<E>(b + l * d.b_stride + j, left), factor[i][l]);
    }
    memcpy(to, &sum, left * sizeof(T));
  }
}

template <typename E, int M>
void accumulate_rows(const Accumulation<typename E::type>& d, int64_t row) {
  constexpr int D = 4;
  for (int i = 0; i < M; ++i) {
    for (int64_t j = 0; j < d.columns; ++j) d.y[(row + i) * d.y_stride + j] = 0;
  }
  int64_t k = 0;
  for (; k + D <= d.depth; k += D) accumulate_tile<E, M, D>(d, row, k);
  for (; k < d.depth; ++k) accumulate_tile<E, M, 1>(d, row, k);
}

template <typename E>
inline void accumulate(const Accumulation<typename E::type>& d) {
  constexpr int M = ETX_SIMD_BYTES == 64 ? 4 : 2;
  int64_t row = 0;
  for (; row + M <= d.rows; row += M) accumulate_rows<E, M>(d, row);
  for (; row < d.rows; ++row) accumulate_rows<E, 1>(d, row);
}

void accumulate_float(const Accumulation<float>& d) { accumulate<Same<float>>(d); }
void accumulate_half(const Accumulation<float>& d) { accumulate<OfHalf>(d); }
void accumulate_bfloat16(const Accumulation<float>& d) { accumulate<OfBfloat16>(d); }
void accumulate_double(const Accumulation<double>& d) { accumulate<Same<double>>(d); }
void accumulate_int(const Accumulation<uint32_t>& d) { accumulate<Same<uint32_t>>(d); }
void accumulate_byte(const Accumulation<uint16_t>& d) { accumulate<OfByte>(d); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_GEMV_H_
