// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_GEMM_H_
#define ETX_PORTABLE_LEVEL_GEMM_H_

/// The matrix product of the `Isa` table: register tiles of kTileRows x kTileColumns.

#include "isa/isa.h"
#if !defined(ETX_GEMM_OF_PAIRS)
#include "isa/level/halves.h"
#endif
#include "isa/level/row_pointers.h"
#include "isa/level/transpose.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kTileRows = 12;
#elif ETX_SIMD_BYTES == 32
constexpr int kTileRows = 6;
#elif defined(__aarch64__)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kTileColumns = 2 * kLanes;
/// Deep tiles take two steps at a time where to count, to find operands and to fetch ahead is a
/// fifth of a step's instructions: a core whose other thread is busy takes half as many.
constexpr bool kStepsInPairs = ETX_SIMD_BYTES == 32;
constexpr int64_t kDeep = 32;

struct Tile {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  const int32_t* b_index;
  int64_t depth;
  const float *row_bias, *column_bias;  ///< A sum begins with the product of the two.
  float* out;
  int64_t out_stride;
  const float* next;  ///< What will be read soon: a cache line is fetched at each step.
  bool fetches;       ///< False where `next` is near already.
};

#if defined(ETX_GEMM_OF_PAIRS)
/// Of fewer sizes than tiles of floats, whose code is smaller.
constexpr int fewer_rows(int rows) { return rows > 4 ? rows - 4 : 1; }
inline int64_t next_rows(int64_t left, int64_t) {
  return left >= kTileRows ? kTileRows : (left < 4 ? 1 : left / 4 * 4);
}
inline VecF add_products(VecF sum, VecF b, float a) {
  return (VecF)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)b);
}
#else
constexpr int fewer_rows(int rows) { return rows - 1; }
/// All tiles have about as many rows.
inline int64_t next_rows(int64_t left, int64_t tiles) { return left / tiles; }
inline VecF add_products(VecF sum, VecF b, float a) { return sum + b * a; }
#endif

/// M rows times V vectors of columns. Small tiles keep U independent sums, so that additions do
/// not wait for each other.
template <int M, int V, bool indexed, bool in_pairs>
void run_tile(const Tile& t) {
  constexpr int U = M * V >= 8 ? 1 : (M * V >= 4 ? 2 : 4);
  VecF acc[U][M][V];
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      acc[0][i][v] = splat(t.row_bias[i]) * load(t.column_bias + v * kLanes);
      ETX_UNROLL
      for (int u = 1; u < U; ++u) acc[u][i][v] = splat(0.0f);
    }
  }
  if constexpr (in_pairs) {
    for (int i = 0; i < M; ++i) prefetch_to_write(t.out + (i * t.out_stride + kTileColumns - 1));
  }
  RowPointers<float, M> rows(t.a, t.a_stride);
  const float* b = t.b;
  const int64_t b_stride = t.b_stride;
  const int32_t* index = t.b_index;
  const float* next = t.next;
  const auto add = [&](VecF(&sum)[M][V], const float* row, int64_t at) ETX_INLINE_LAMBDA {
    VecF bv[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) bv[v] = load(row + v * kLanes);
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      const float s = rows.at(i, at);
      ETX_UNROLL
      for (int v = 0; v < V; ++v) sum[i][v] = add_products(sum[i][v], bv[v], s);
    }
  };
  if constexpr (in_pairs) {
    constexpr int64_t kLine = 16;
    for (int64_t left = t.depth / 2; left > 0;) {
      const int64_t pairs = t.fetches && left > kLine / 2 ? kLine / 2 : left;
      left -= pairs;
      for (int i = 0; t.fetches && i < M; ++i) prefetch(next + i * t.a_stride);
      next += kLine;
      const float* const end = rows.group[0] + 2 * pairs;
      for (; rows.group[0] != end; rows.advance(2)) {
        add(acc[0], indexed ? b + index[0] : b, 0);
        add(acc[0], indexed ? b + index[1] : b + b_stride, 1);
        if (indexed) index += 2;
        if (!indexed) b += 2 * b_stride;
      }
    }
    if (t.depth % 2 != 0) add(acc[0], indexed ? b + index[0] : b, 0);
  } else {
    int64_t k = 0;
    const auto step = [&](VecF(&sum)[M][V]) ETX_INLINE_LAMBDA {
      add(sum, indexed ? b + index[k] : b, k);
      prefetch(next);
      next += kLanes == 16 ? 16 : M;  // M rows are M floats a step; more drive out what is there.
      if (!indexed) b += b_stride;
      ++k;
    };
    if constexpr (U == 2) {
      while (k + 2 <= t.depth) step(acc[0]), step(acc[1]);
    } else if constexpr (U == 4) {
      while (k + 4 <= t.depth) step(acc[0]), step(acc[1]), step(acc[2]), step(acc[3]);
    }
    while (k < t.depth) step(acc[0]);
  }
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      VecF sum = acc[0][i][v];
      ETX_UNROLL
      for (int u = 1; u < U; ++u) sum = sum + acc[u][i][v];
      store(t.out + i * t.out_stride + v * kLanes, sum);
    }
  }
}

template <int V, bool indexed, bool is_deep = false, int M = kTileRows>
inline void run_rows(int64_t rows, const Tile& t) {
  if (rows == M) {
    run_tile<M, V, indexed, is_deep && M * V >= 8>(t);
  } else if constexpr (M > (is_deep ? 4 : 1)) {
    run_rows<V, indexed, is_deep, fewer_rows(M)>(rows, t);
  }
}

inline void run(int64_t rows, int64_t columns, const Tile& t) {
  const bool wide = columns > kLanes;
  if constexpr (kStepsInPairs) {
    if (wide && rows >= 4 && t.depth >= kDeep) {
      return t.b_index == nullptr ? run_rows<2, false, true>(rows, t)
                                  : run_rows<2, true, true>(rows, t);
    }
  }
  if (t.b_index == nullptr) {
    wide ? run_rows<2, false>(rows, t) : run_rows<1, false>(rows, t);
    return;
  }
#if !defined(ETX_GEMM_OF_PAIRS)
  if (!wide) return run_rows<1, true>(rows, t);
#endif
  run_rows<2, true>(rows, t);
}

inline void copy_floats(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load(from + i));
  if (kLanes < 8) {
    for (; i < n; ++i) to[i] = from[i];
  } else if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    store_part(to + i, load_part(from + i, rest), rest);
  }
}

/// A stretch of a panel's columns that lies in one row of the box.
struct Run {
  int32_t from, length;
  int64_t to;
};

inline int find_runs(const Gemm& g, int64_t column, int64_t columns, Run* runs) {
  if (g.store == Gemm::Store::Transposed) return 0;
  if (g.store == Gemm::Store::Rows) {
    runs[0] = {0, static_cast<int32_t>(columns), column};
    return 1;
  }
  int count = 0;
  const auto height = static_cast<int32_t>(g.box[0]), width = static_cast<int32_t>(g.box[1]);
  const int32_t line = static_cast<int32_t>(column) / width;
  int32_t z = line / height, y = line % height, x = static_cast<int32_t>(column) % width;
  const int64_t end = column + columns;
  for (int64_t q = column; q < end;) {
    const int64_t left = end - q < g.box[1] - x ? end - q : g.box[1] - x;
    const int64_t use = left < g.valid[2] - x ? left : g.valid[2] - x;
    if (use > 0 && y < g.valid[1] && z < g.valid[0]) {
      runs[count++] = {static_cast<int32_t>(q - column), static_cast<int32_t>(use),
                       z * g.step[0] + y * g.step[1] + x * g.step[2]};
    }
    q += left;
    x = 0;
    if (++y == height) y = 0, ++z;
  }
  return count;
}

/// Stores part of a tile that `run_tile` left in `t`, kTileColumns floats a row.
ETX_NOINLINE void finish(const Gemm& g, const float* t, int64_t row, int64_t rows, int64_t column,
                         int64_t columns, const Run* runs, int count) {
  if (g.store == Gemm::Store::Transposed) {
    store_transposed(t, kTileColumns, rows, columns, g.c + column * g.c_stride + row, g.c_stride);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    float* const c = g.c + (row + i) * g.c_stride;
    for (int r = 0; r < count; ++r) {
      const float* const from = t + i * kTileColumns + runs[r].from;
      float* const to = c + runs[r].to;
      if (g.step[2] == 1) {
        copy_floats(from, to, runs[r].length);
      } else {
        for (int32_t j = 0; j < runs[r].length; ++j) to[j * g.step[2]] = from[j];
      }
    }
  }
}

/// Copies rows of A next to each other; returns their new stride.
ETX_NOINLINE int64_t gather(const Gemm& g, int64_t row, int64_t rows) {
  const int64_t stride = scratch_stride(g.depth);
  for (int64_t i = 0; i < rows; ++i) {
    float* const to = g.scratch + i * stride;
#if !defined(ETX_GEMM_OF_PAIRS)
    if (g.a_half != nullptr) {
      from_bfloat16(g.a_half + (row + i) * g.a_stride, to, static_cast<size_t>(g.depth));
      continue;
    }
#endif
    const float* const from = g.a + (row + i) * g.a_stride;
#if !defined(ETX_GEMM_OF_PAIRS)
    if (g.a_index != nullptr) {
      for (int64_t k = 0; k < g.depth; ++k) to[k] = from[g.a_index[k]];
      continue;
    }
#endif
    copy_floats(from, to, g.depth);
  }
  return stride;
}

/// Longer rows are fetched by the processor; asked for early, they drive out what is there.
constexpr int64_t kShortRow = 1024;

void gemm_rows(const Gemm& g, int64_t row, int64_t rows, int64_t begin, int64_t end) {
  alignas(64) float buffer[kTileRows * kTileColumns];
  constexpr int kOnes = kTileRows > kTileColumns ? kTileRows : kTileColumns;
  static constexpr float kZeros[kTileRows] = {};
  float ones[kOnes];
  for (float& one : ones) one = 1.0f;
  Tile t;
  t.a_stride = g.a_stride;
  t.b_index = g.b_index;
  t.depth = g.depth;
  t.row_bias = g.bias != nullptr ? g.bias + row : (g.column_bias != nullptr ? ones : kZeros);
  if (g.scratch != nullptr) {
    t.a_stride = gather(g, row, rows);
    t.a = g.scratch;
  } else {
    t.a = g.a + row * g.a_stride;
  }
  const bool lies_so = g.a_index == nullptr && g.a_half == nullptr;
  const float* const behind = lies_so ? g.a + (row + rows) * g.a_stride : g.scratch;
  for (int64_t column = begin; column < end; column += kTileColumns) {
    const int64_t columns = end - column < kTileColumns ? end - column : kTileColumns;
    const bool in_tail = g.tail != nullptr && columns < kTileColumns;
    t.b = in_tail ? g.tail : g.b + column / kTileColumns * g.panel_stride;
    t.b_stride = in_tail ? kTileColumns : g.b_stride;
    t.column_bias = g.column_bias != nullptr ? g.column_bias + column : ones;
    t.fetches = column + kTileColumns >= end && g.depth <= kShortRow;
    t.next = t.fetches ? behind : t.a;
    Run runs[kTileColumns];
    const int count = find_runs(g, column, columns, runs);
    const bool whole = count == 1 && runs[0].length == kTileColumns && g.step[2] == 1;
    t.out = whole ? g.c + row * g.c_stride + runs[0].to : buffer;
    t.out_stride = whole ? g.c_stride : kTileColumns;
    run(rows, columns, t);
    if (!whole) finish(g, buffer, row, rows, column, columns, runs, count);
  }
}

void gemm(const Gemm& g) {
  const int64_t rows = g.row_end - g.row_begin;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t begin = g.column_begin; begin < g.column_end; begin += g.column_block) {
    const int64_t left = g.column_end - begin;
    const int64_t end = begin + (left < g.column_block ? left : g.column_block);
    for (int64_t first = 0, tile = 0; first < rows; ++tile) {
      const int64_t count = next_rows(rows - first, tiles - tile);
      gemm_rows(g, g.row_begin + first, count, begin, end);
      first += count;
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_GEMM_H_
