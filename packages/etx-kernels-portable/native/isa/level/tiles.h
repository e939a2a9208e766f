// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_TILES_H_
#define ETX_PORTABLE_LEVEL_TILES_H_

/// The matrix product of pairs by the processor's tiles (AMX): 16 rows of 16 floats or pairs.

#include "isa/level/gemm.h"
#include "isa/tile_shapes.h"

namespace etx::portable {
namespace {

constexpr int64_t kEdge = 16, kBlockRows = 2 * kEdge, kBytes = sizeof(float);

/// Of the eight tiles 0 to 3 are sums, 4 and 5 parts of A and B, 6 and 7 those of the last steps
/// where they are fewer than 16.
constexpr int kPartA = 4, kPartB = 5, kLastA = 6, kLastB = 7;

struct Block {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  const int32_t* b_index;
  int64_t depth;
  const float* bias;               ///< What sums begin with, rows `bias_stride` apart.
  int64_t bias_stride, bias_next;  ///< The latter to the other sixteen columns.
  float* out;
  int64_t out_stride;
  const float* next;  ///< Rows of A that will be read soon: a line of each is fetched at a step.
  int64_t next_rows;
};

/// Where `steps` rows of B lie, `stride` apart: as the index has them, or else copied.
template <int V>
inline const float* rows_of_b(const Block& t, int64_t k, int64_t steps, float* copied,
                              int64_t& stride) {
  stride = t.b_stride;
  if (t.b_index == nullptr) return t.b + k * stride;
  const int32_t* const index = t.b_index + k;
  const int32_t step = steps > 1 ? index[1] - index[0] : 0;
  const __mmask16 mask = static_cast<__mmask16>(0xffff >> (kEdge - steps));
  const __m512i place = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i even = _mm512_add_epi32(_mm512_set1_epi32(index[0]),
                                        _mm512_mullo_epi32(place, _mm512_set1_epi32(step)));
  const __m512i lies = _mm512_maskz_loadu_epi32(mask, index);
  stride = step;
  if (_mm512_mask_cmpneq_epi32_mask(mask, lies, even) == 0) return t.b + index[0];
  stride = kTileColumns;
  for (int64_t i = 0; i < steps; ++i) {
    for (int v = 0; v < V; ++v) {
      store(copied + i * kTileColumns + v * kLanes, load(t.b + index[i] + v * kLanes));
    }
  }
  return copied;
}

/// Four tiles of sums, where no tile is set apart for a last step.
inline void add_whole_step(const Block& t, int64_t k, float* copied) {
  int64_t stride;
  const float* const b = rows_of_b<2>(t, k, kEdge, copied, stride);
  const float* const a = t.a + k;
  for (int64_t i = 0; i < t.next_rows; ++i) prefetch(t.next + i * t.a_stride + k);
  load_tile<kPartA>(a, kBytes * t.a_stride);
  load_tile<kPartB>(b, kBytes * stride);
  add_pairs<0, kPartA, kPartB>();
  load_tile<kLastA>(a + kEdge * t.a_stride, kBytes * t.a_stride);
  add_pairs<2, kLastA, kPartB>();
  load_tile<kLastB>(b + kEdge, kBytes * stride);
  add_pairs<1, kPartA, kLastB>();
  add_pairs<3, kLastA, kLastB>();
}

/// R and V tiles of rows and of columns.
template <int R, int V, int in_a, int in_b>
inline void add_step(const Block& t, int64_t k, int64_t steps, float* copied) {
  int64_t stride;
  const float* const b = rows_of_b<V>(t, k, steps, copied, stride);
  const float* const a = t.a + k;
  for (int64_t i = 0; i < t.next_rows; ++i) prefetch(t.next + i * t.a_stride + k);
  load_tile<in_a>(a, kBytes * t.a_stride);
  load_tile<in_b>(b, kBytes * stride);
  add_pairs<0, in_a, in_b>();
  if constexpr (R == 2) {
    load_tile<in_a>(a + kEdge * t.a_stride, kBytes * t.a_stride);
    add_pairs<2, in_a, in_b>();
  }
  if constexpr (V == 2) {
    load_tile<in_b>(b + kEdge, kBytes * stride);
    if constexpr (R == 2) {
      add_pairs<3, in_a, in_b>();
      load_tile<in_a>(a, kBytes * t.a_stride);
    }
    add_pairs<1, in_a, in_b>();
  }
}

template <int R, int V>
void run_block(const Block& t) {
  alignas(64) float copied[kEdge * kTileColumns];
  const float* const below = t.bias + kEdge * t.bias_stride;
  float* const under = t.out + kEdge * t.out_stride;
  load_tile<0>(t.bias, kBytes * t.bias_stride);
  if constexpr (V == 2) load_tile<1>(t.bias + t.bias_next, kBytes * t.bias_stride);
  if constexpr (R == 2) load_tile<2>(below, kBytes * t.bias_stride);
  if constexpr (R == 2 && V == 2) load_tile<3>(below + t.bias_next, kBytes * t.bias_stride);
  int64_t k = 0;
  if constexpr (R == 2 && V == 2) {
    if (t.depth % kEdge == 0) {
      for (; k < t.depth; k += kEdge) add_whole_step(t, k, copied);
    }
  }
  for (; k + kEdge <= t.depth; k += kEdge) add_step<R, V, kPartA, kPartB>(t, k, kEdge, copied);
  if (k < t.depth) add_step<R, V, kLastA, kLastB>(t, k, t.depth - k, copied);
  store_tile<0>(t.out, kBytes * t.out_stride);
  if constexpr (V == 2) store_tile<1>(t.out + kEdge, kBytes * t.out_stride);
  if constexpr (R == 2) store_tile<2>(under, kBytes * t.out_stride);
  if constexpr (R == 2 && V == 2) store_tile<3>(under + kEdge, kBytes * t.out_stride);
}

/// to[j][i] = from[i][j] for i < rows <= 16 and j < columns; reads columns in fours.
inline void turn(const float* from, int64_t rows, int64_t columns, float* to, int64_t stride) {
  const __mmask16 mask = static_cast<__mmask16>(0xffff >> (kEdge - rows));
  for (int64_t j = 0; j < columns; j += 4, from += 4) {
    __m512 x[4];
    ETX_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float* const row = from + i * kTileColumns;
      x[i] = _mm512_castps128_ps512(_mm_loadu_ps(row));
      ETX_UNROLL
      for (int lane = 1; lane < 4; ++lane) {
        x[i] = _mm512_mask_broadcast_f32x4(x[i], static_cast<__mmask16>(15 << 4 * lane),
                                           _mm_loadu_ps(row + 4 * lane * kTileColumns));
      }
    }
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    const __m512d b = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    const __m512d c = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    const __m512d y[4] = {_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b),
                          _mm512_unpacklo_pd(c, d), _mm512_unpackhi_pd(c, d)};
    ETX_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (j + i < columns)
        _mm512_mask_storeu_ps(to + (j + i) * stride, mask, _mm512_castpd_ps(y[i]));
    }
  }
}

/// As `finish`; tiles are made with whole edges.
ETX_NOINLINE void finish_transposed(const Gemm& g, const float* t, int64_t row, int64_t rows,
                                    int64_t column, int64_t columns) {
  for (int64_t i = 0; i < rows; i += kEdge) {
    const int64_t count = rows - i < kEdge ? rows - i : kEdge;
    turn(t + i * kTileColumns, count, columns, g.c + column * g.c_stride + row + i, g.c_stride);
  }
}

void multiply_rows(const Gemm& g, int64_t row, int64_t rows, int64_t begin, int64_t end) {
  alignas(64) float buffer[kBlockRows * kTileColumns];
  alignas(64) float biases[kBlockRows * kEdge];
  static constexpr float kZeros[kTileColumns] = {};
  Block t;
  t.a = g.a + row * g.a_stride, t.a_stride = g.a_stride;
  t.b_index = g.b_index;
  t.depth = g.depth;
  t.bias = kZeros, t.bias_stride = t.bias_next = 0;
  if (g.bias != nullptr) {
    for (int64_t i = 0; i < rows; ++i) store(biases + i * kEdge, splat(g.bias[row + i]));
    t.bias = biases, t.bias_stride = kEdge;
  } else if (g.column_bias != nullptr) {
    t.bias_next = kEdge;
  }
  const bool transposes = g.store == Gemm::Store::Transposed;
  const int64_t panels = (end - begin + kTileColumns - 1) / kTileColumns;
  const int64_t left = g.row_end - row - rows < kBlockRows ? g.row_end - row - rows : kBlockRows;
  const int64_t fetched = (left + panels - 1) / panels;
  for (int64_t column = begin, from = 0; column < end; column += kTileColumns, from += fetched) {
    t.next = g.a + (row + rows + from) * g.a_stride;
    t.next_rows = left - from < fetched ? left - from : fetched;
    const int64_t columns = end - column < kTileColumns ? end - column : kTileColumns;
    const bool in_tail = g.tail != nullptr && columns < kTileColumns;
    t.b = in_tail ? g.tail : g.b + column / kTileColumns * g.panel_stride;
    t.b_stride = in_tail ? kTileColumns : g.b_stride;
    if (t.bias_next != 0) t.bias = g.column_bias + column;
    Run runs[kTileColumns];
    const int count = find_runs(g, column, columns, runs);
    const bool whole = count == 1 && runs[0].length == kTileColumns && g.step[2] == 1;
    t.out = whole ? g.c + row * g.c_stride + runs[0].to : buffer;
    t.out_stride = whole ? g.c_stride : kTileColumns;
    for (int64_t j = 0; transposes && j < columns; ++j) {
      prefetch_to_write(g.c + (column + j) * g.c_stride + row);
      prefetch_to_write(g.c + (column + j) * g.c_stride + row + rows - 1);
    }
    for (int64_t i = 0; whole && i < rows; ++i) {
      prefetch_to_write(t.out + i * t.out_stride);
      prefetch_to_write(t.out + i * t.out_stride + kTileColumns - 1);
    }
    const bool wide = columns > kEdge;
    if (rows > kEdge) {
      wide ? run_block<2, 2>(t) : run_block<2, 1>(t);
    } else {
      wide ? run_block<1, 2>(t) : run_block<1, 1>(t);
    }
    if (transposes) {
      finish_transposed(g, buffer, row, rows, column, columns);
    } else if (!whole) {
      finish(g, buffer, row, rows, column, columns, runs, count);
    }
  }
}

void gemm_of_tiles(const Gemm& g) {
  int64_t shaped = 0;
  for (int64_t begin = g.column_begin; begin < g.column_end; begin += g.column_block) {
    const int64_t left = g.column_end - begin;
    const int64_t end = begin + (left < g.column_block ? left : g.column_block);
    for (int64_t row = g.row_begin, rows = 0; row < g.row_end; row += rows) {
      rows = g.row_end - row;
      if (rows >= kEdge) rows = rows < kBlockRows ? kEdge : kBlockRows;
      const int64_t edge = rows < kEdge ? rows : kEdge;
      if (edge != shaped) set_tiles(edge, g.depth % kEdge);
      shaped = edge;
      multiply_rows(g, row, rows, begin, end);
    }
  }
  release_tiles();
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_TILES_H_
