// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_PRODUCT_H_
#define ETX_PORTABLE_INTEGER_PRODUCT_H_

/// Products of gathered rows and packed weights: kTileRows rows with kPanelBlocks blocks of columns
/// at once, whose sums stay in registers.

#include "isa/integer/level/int4.h"
#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES < 32
/// Stores a row of a tile of which the last columns are none.
ETX_NOINLINE void store_row_part(int8_t* out, const VecI* bytes, int64_t n) {
  for (int v = 0; n > 0; ++v, n -= kLanes, out += kLanes) {
    store_bytes_part(out, bytes[v], n < kLanes ? n : kLanes);
  }
}
#endif

struct ToBytes {
  static constexpr bool kHalves = kParts == 2;  ///< Of the last block only columns that are.
  static constexpr int kBlockRows = kTileRows;  ///< Multiplied at once with one block of columns.

  template <int M, int V>
  ETX_NOINLINE static void run(const Product& p, const Tile& t, const Place& at) {
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
    VecF scale[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) scale[v] = load(p.scale + at.column + v * kLanes);
#if ETX_SIMD_BYTES == 64
    const int64_t n = at.columns < V * kLanes ? at.columns : V * kLanes;
    const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << n) - 1);
    ETX_UNROLL
    for (int i = 0; i < M; i += 4 / V) {
      VecI four[4];
      VecF factors[4];
      ETX_UNROLL
      for (int k = 0; k < 4; ++k) {
        four[k] = sums[i + k / V < M ? i + k / V : i][k % V];
        factors[k] = scale[k % V];
      }
      to_bytes.store_rows<V, M>(out + i * p.out_stride, p.out_stride, four, factors, mask);
    }
#elif ETX_SIMD_BYTES == 32
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      to_bytes.store_block(out + i * p.out_stride, sums[i], scale, at.columns);
    }
#else
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      ETX_UNROLL
      for (int i = 0; i < M; ++i) sums[i][v] = to_bytes.from_sums(sums[i][v], scale[v]);
    }
    if (at.columns >= V * kLanes) {
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        ETX_UNROLL
        for (int v = 0; v < V; ++v) store_bytes(out + i * p.out_stride + v * kLanes, sums[i][v]);
      }
      return;
    }
    for (int i = 0; i < M; ++i) store_row_part(out + i * p.out_stride, sums[i], at.columns);
#endif
  }
};

struct ToFloats {
  static constexpr bool kHalves = false;
  static constexpr int kBlockRows = kTileRows;

  template <int M, int V>
  ETX_NOINLINE static void run(const Product& p, const Tile& t, const Place& at) {
    Sums<M, V> sums = {};
    add_steps<M, V>(sums, t, p.steps);
    VecF totals[M][V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const VecI weights = load_ints(p.sums + at.column + v * kLanes);
      const VecF scale = load(p.scale + at.column + v * kLanes);
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        totals[i][v] =
            to_floats(without_offset(sums[i][v], weights, p.row_scales[at.row + i].offset)) * scale;
      }
    }
    finish_rows<M, V>(p, totals, at);
  }
};

constexpr int64_t fewer(int64_t rows) { return rows > 4 ? 4 : rows / 2; }

/// Runs a tile of `rows` rows, M or fewer, with V vectors of columns.
template <class Kind, int V, int M>
inline void run_tile(int64_t rows, const Product& p, const Tile& t, const Place& at) {
  if (rows == M) return Kind::template run<M, V>(p, t, at);
  if constexpr (M > 1) run_tile<Kind, V, static_cast<int>(fewer(M))>(rows, p, t, at);
}

/// All rows, as few as are left at last.
template <class Kind, int V, int M>
ETX_NOINLINE void run_rows(const Product& p, Tile t, Place at) {
  for (int64_t rows = M; at.row < p.num_rows; at.row += rows, t.rows += rows * t.row_stride) {
    while (rows > p.num_rows - at.row) rows = fewer(rows);
    run_tile<Kind, V, M>(rows, p, t, at);
    t.next += t.other;
    t.other = -t.other;
  }
}

/// Panel by panel, each with all rows: it stays in the nearest cache meanwhile.
template <class Kind>
void run_product(const Product& p, int64_t block_stride) {
  const bool held = p.columns / kBlockColumns * block_stride <= kHeldBytes;
  for (int64_t block = p.begin; block < p.end;) {
    const bool whole = p.end - block >= kPanelBlocks;
    const int64_t after = block + (whole ? kPanelBlocks : 1);
    const int8_t* const weight = p.weight + block * block_stride;
    const int8_t* const next = p.weight + (after < p.end ? after : p.begin) * block_stride;
    const int64_t other = p.end - after >= kPanelBlocks ? (kPanelBlocks - 1) * block_stride : 0;
    const Tile t = {p.rows, p.row_stride, weight,          block_stride,          next,
                    held,   other,        p.num_rows == 1, ahead_of(block_stride)};
    const Place at = {0, block * kBlockColumns, p.columns - block * kBlockColumns};
    if (Kind::kHalves && at.columns <= kLanes) {
      run_rows<Kind, Kind::kHalves ? kParts / 2 : kParts, kTileRows>(p, t, at);
    } else if (whole) {
      run_rows<Kind, kPanelBlocks * kParts, kTileRows>(p, t, at);
    } else {
      run_rows<Kind, kParts, Kind::kBlockRows>(p, t, at);
    }
    block = after;
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
