// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_PRODUCT_H_
#define ETX_PORTABLE_INTEGER_PRODUCT_H_

/// Products of gathered rows and packed weights: kTileRows rows with kPanelBlocks blocks of columns
/// at once, whose sums stay in registers.

#include "isa/integer/level/dot.h"
#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kTileRows = 8, kPanelBlocks = 2;
#elif ETX_SIMD_BYTES == 32
constexpr int kTileRows = kStepBytes == 4 ? 6 : 4, kPanelBlocks = 1;
#elif ETX_SIMD_BYTES == 16
#if defined(__ARM_FEATURE_DOTPROD)
constexpr int kTileRows = 6, kPanelBlocks = 1;
#else
constexpr int kTileRows = 2, kPanelBlocks = 1;
#endif
#else
constexpr int kTileRows = 1, kPanelBlocks = 1;
#endif

inline void prefetch_bytes(const int8_t* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p, 0, 2);
#else
  (void)p;
#endif
}

/// A tile's operands: M rows, and blocks of columns that are `block_stride` bytes apart.
struct Tile {
  const uint8_t* rows;
  int64_t row_stride;
  const int8_t* weight;
  int64_t block_stride;
  const int8_t* next;  ///< What will be read soon.
};

template <int M, int V>
using Sums = VecI[M][V];

/// The vectors of a tile's blocks at one place of the depth.
template <int V>
struct Columns {
  VecI bytes[V];
  Columns(const int8_t* block, int64_t block_stride) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      bytes[v] = load_bytes(block + v / kParts * block_stride + v % kParts * ETX_SIMD_BYTES);
    }
  }
};

/// Pointers to rows: every address is one of them plus 0, 1 or 2 times the stride, and all of them
/// fit the registers.
template <int M>
struct RowPointers {
  const uint8_t* group[(M + 2) / 3];
  int64_t stride;
  explicit RowPointers(const Tile& t) : stride(t.row_stride) {
    for (int g = 0; g < (M + 2) / 3; ++g) group[g] = t.rows + 3 * g * t.row_stride;
  }
  const uint8_t* at(int row, int64_t step) const {
    return group[row / 3] + (row % 3) * stride + step * kStepBytes;
  }
};

/// Adds the products of block `step` of the depth.
template <int M, int V>
inline void add_step(Sums<M, V>& sums, const RowPointers<M>& rows, int64_t step,
                     const VecI (&bytes)[V]) {
  if constexpr (V * sizeof(Right) <= 4 * sizeof(VecI)) {
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      const Left a(rows.at(i, step));
      ETX_UNROLL
      for (int v = 0; v < V; ++v) sums[i][v] = dot(sums[i][v], a, Right(bytes[v]));
    }
  } else {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const Right b(bytes[v]);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) sums[i][v] = dot(sums[i][v], Left(rows.at(i, step)), b);
    }
  }
}

template <int M, int V>
inline void add_steps(Sums<M, V>& sums, const Tile& t, int64_t steps) {
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight;
  const int8_t* next = t.next;
  for (int64_t k = 0; k < steps; ++k, w += kBlockBytes, next += kBlockBytes) {
    const Columns<V> columns(w, t.block_stride);
    prefetch_bytes(next);
    add_step<M, V>(sums, rows, k, columns.bytes);
  }
}

/// The same of int4: steps [begin, end), `begin` even.
template <int M, int V>
inline void add_steps_int4(Sums<M, V>& sums, const Tile& t, int64_t begin, int64_t end) {
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight + begin / 2 * kBlockBytes;
  const int8_t* next = t.next + begin / 2 * kBlockBytes;
  for (int64_t k = begin; k < end; k += 2, w += kBlockBytes, next += kBlockBytes) {
    const Columns<V> columns(w, t.block_stride);
    prefetch_bytes(next);
    VecI part[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) part[v] = low_nibbles(columns.bytes[v]);
    add_step<M, V>(sums, rows, k, part);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) part[v] = high_nibbles(columns.bytes[v]);
    add_step<M, V>(sums, rows, k + 1, part);
  }
}

/// A tile's place in a product.
struct Place {
  int64_t row;
  int64_t column;
  int64_t columns;  ///< Left of it; more than the tile has, or a part of its last block.
};

inline VecF load_up_to(const float* p, int64_t n) {
  return n >= kLanes ? load(p) : load_part(p, n > 0 ? static_cast<size_t>(n) : 0);
}
inline VecI load_up_to(const int32_t* p, int64_t n) {
  if (n >= kLanes) return load_ints(p);
  int32_t t[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i];
  return load_ints(t);
}
inline void store_up_to(float* p, VecF v, int64_t n) {
  if (n >= kLanes) return store(p, v);
  if (n > 0) store_part(p, v, static_cast<size_t>(n));
}

struct ToBytes {
  template <int M, int V>
  static void run(const Product& p, const Tile& t, const Place& at) {
    Sums<M, V> sums;
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const VecI start = load_ints(p.start + at.column + v * kLanes);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) sums[i][v] = start;
    }
    add_steps<M, V>(sums, t, p.steps);
    const Requantize to_bytes(p.bounds);
    int8_t* const out = p.out + at.row * p.out_stride + at.column;
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const VecF scale = load(p.scale + at.column + v * kLanes);
      const int64_t n = at.columns - v * kLanes;
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        const VecI q = to_bytes.from_sums(sums[i][v], scale);
        int8_t* const to = out + i * p.out_stride + v * kLanes;
        if (n >= kLanes) {
          store_bytes(to, q);
        } else if (n > 0) {
          store_bytes_part(to, q, n);
        }
      }
    }
  }
};

/// y = total * factor + bias, within bounds.
inline VecF finish_float(const Product& p, VecF total, VecF bias) {
  return smallest(largest(total + bias, splat(p.least)), splat(p.most));
}
inline VecF bias_of(const Product& p, int64_t column, int64_t n) {
  return p.bias == nullptr || n <= 0 ? splat(0.0f) : load_up_to(p.bias + column, n);
}

struct ToFloats {
  template <int M, int V>
  static void run(const Product& p, const Tile& t, const Place& at) {
    Sums<M, V> sums = {};
    add_steps<M, V>(sums, t, p.steps);
    float* const y = p.y + at.row * p.y_stride + at.column;
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t column = at.column + v * kLanes, n = at.columns - v * kLanes;
      if (n <= 0) break;
      const VecI total = load_up_to(p.sums + column, n);
      const VecF scale = load_up_to(p.scale + column, n), bias = bias_of(p, column, n);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        const RowScale row = p.row_scales[at.row + i];
        const VecF value = to_floats(sums[i][v] - total * row.offset) * (scale * row.scale);
        store_up_to(y + i * p.y_stride + v * kLanes, finish_float(p, value, bias), n);
      }
    }
  }
};

struct ToFloatsInt4 {
  template <int M, int V>
  static void run(const Product& p, const Tile& t, const Place& at) {
    VecF totals[M][V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      ETX_UNROLL
      for (int i = 0; i < M; ++i) totals[i][v] = splat(0.0f);
    }
    for (int64_t g = 0; g < p.groups; ++g) {
      Sums<M, V> sums = {};
      const int64_t begin = g * p.group_steps, end = begin + p.group_steps;
      add_steps_int4<M, V>(sums, t, begin, end < p.steps ? end : p.steps);
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        const int64_t column = at.column + v * kLanes, n = at.columns - v * kLanes;
        if (n <= 0) break;
        const VecI total = load_up_to(p.sums + g * p.group_stride + column, n);
        const VecF scale = load_up_to(p.scale + g * p.group_stride + column, n);
        ETX_UNROLL
        for (int i = 0; i < M; ++i) {
          const VecI sum = sums[i][v] - total * p.row_scales[at.row + i].offset;
          totals[i][v] = totals[i][v] + to_floats(sum) * scale;
        }
      }
    }
    float* const y = p.y + at.row * p.y_stride + at.column;
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t n = at.columns - v * kLanes;
      if (n <= 0) break;
      const VecF bias = bias_of(p, at.column + v * kLanes, n);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        const VecF value = totals[i][v] * p.row_scales[at.row + i].scale;
        store_up_to(y + i * p.y_stride + v * kLanes, finish_float(p, value, bias), n);
      }
    }
  }
};

template <class Kind, int P, int M = kTileRows>
inline void run_rows(int64_t rows, const Product& p, const Tile& t, const Place& at) {
  if (rows == M) {
    Kind::template run<M, P * kParts>(p, t, at);
  } else if constexpr (M > 1) {
    run_rows<Kind, P, M - 1>(rows, p, t, at);
  }
}

/// Panel by panel, each with all rows: it stays in the nearest cache meanwhile.
template <class Kind>
void run_product(const Product& p, int64_t block_stride) {
  const int64_t tiles = (p.num_rows + kTileRows - 1) / kTileRows;
  for (int64_t block = p.begin; block < p.end; block += kPanelBlocks) {
    const bool whole = p.end - block >= kPanelBlocks;
    Tile t = {p.rows, p.row_stride, p.weight + block * block_stride, block_stride, nullptr};
    const int64_t after = block + kPanelBlocks < p.end ? block + kPanelBlocks : p.begin;
    t.next = p.weight + after * block_stride;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t first = i * p.num_rows / tiles, last = (i + 1) * p.num_rows / tiles;
      t.rows = p.rows + first * p.row_stride;
      const Place at = {first, block * kBlockColumns, p.columns - block * kBlockColumns};
      if (whole) {
        run_rows<Kind, kPanelBlocks>(last - first, p, t, at);
      } else {
        run_rows<Kind, 1>(last - first, p, t, at);
      }
    }
  }
}

void product(const Product& p) { run_product<ToBytes>(p, p.steps * kBlockBytes); }
void float_product(const Product& p) { run_product<ToFloats>(p, p.steps * kBlockBytes); }
void float_product_int4(const Product& p) {
  run_product<ToFloatsInt4>(p, p.steps / 2 * kBlockBytes);
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_PRODUCT_H_
