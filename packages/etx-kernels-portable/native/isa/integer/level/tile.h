// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_TILE_H_
#define ETX_PORTABLE_INTEGER_TILE_H_

/// Products of a tile: a few gathered rows and blocks of columns, whose sums stay in registers.

#include "isa/integer/level/dot.h"
#include "isa/integer/level/matrix_dot.h"

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

/// A sum without what the zero point `offset` of a row adds to it, where the weights are said to
/// add up to `weights`: by a file, which may say anything.
inline VecI without_offset(VecI sum, VecI weights, int32_t offset) {
  const VecU added = to_unsigned(weights) * splat(static_cast<uint32_t>(offset));
  return to_signed(to_unsigned(sum) - added);
}

inline void prefetch_bytes(const void* p) {
#if defined(__GNUC__)
  __builtin_prefetch(p, 0, 2);
#else
  (void)p;
#endif
}

/// How far before it is needed a weight is fetched that one row streams through: pages that are
/// new to the processor, too, have come by then.
constexpr int64_t kAhead = 16384;
/// The same where two blocks of a panel are read at once: less than a block ahead of one is what
/// the other reads. What is further ahead than it is long lies in the next panel.
constexpr int64_t kPanelAhead = 61440;

constexpr int64_t ahead_of(int64_t block_stride) {
  return kPanelBlocks > 1 && block_stride + kBlockBytes * 64 <= kPanelAhead ? kPanelAhead : kAhead;
}

/// Weights that the second cache may hold; fetching those takes longer than it saves. What is
/// larger comes from memory where it is one of many.
constexpr int64_t kHeldBytes = 1 << 19;

/// A tile's operands: M rows, and blocks of columns that are `block_stride` bytes apart.
struct Tile {
  const uint8_t* rows;
  int64_t row_stride;
  const int8_t* weight;
  int64_t block_stride;
  const int8_t* next;      ///< A block that will be read soon.
  bool held;               ///< All of the weight is likely to be in the second cache.
  int64_t other = 0;       ///< How far from it another one is, which the next tile fetches.
  bool is_lone = false;    ///< The only row.
  int64_t ahead = kAhead;  ///< How far before it is needed one row's weight is fetched.
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

/// Independent sums that are added in turns, so that additions do not wait for each other.
constexpr int turns(int rows, int vectors) {
  const int sums = rows * vectors;
  return sums >= 8 ? 1 : (sums >= 4 ? 2 : 4);
}

template <int M, int V>
inline void add_sums(Sums<M, V>& sums, const Sums<M, V>& more) {
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) sums[i][v] += more[i][v];
  }
}

/// `ahead`: fetches what one row will need.
template <int M, int V, bool ahead>
inline void add_steps(Sums<M, V>& sums, const Tile& t, int64_t steps) {
  constexpr int U = turns(M, V);
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight;
  const int8_t* next = ahead ? w + t.ahead : t.next;
  int64_t k = 0;
#if defined(ETX_INTEGER_MATRICES)
  if constexpr (M > 1) {
    PairSums<M, V> pairs = {};
    for (; k + 2 <= steps; k += 2, w += 2 * kBlockBytes, next += 2 * kBlockBytes) {
      const Columns<V> first(w, t.block_stride), second(w + kBlockBytes, t.block_stride);
      if (M > 4) prefetch_bytes(next);
      add_pairs<M, V>(pairs, first.bytes, second.bytes, [&](int i) { return rows.at(i, k); });
    }
    add_to_rows<M, V>(sums, pairs);
  }
#endif
  const auto step = [&](Sums<M, V>& own) {
    const Columns<V> columns(w, t.block_stride);
    if (M > 4) prefetch_bytes(next);
    ETX_UNROLL
    for (int v = 0; ahead && v < V; v += kParts) {
      prefetch_bytes(next + v / kParts * t.block_stride);
    }
    add_step<M, V>(own, rows, k, columns.bytes);
    ++k, w += kBlockBytes, next += kBlockBytes;
  };
  if constexpr (U == 2) {
    Sums<M, V> more = {};
    while (k + 2 <= steps) step(sums), step(more);
    add_sums<M, V>(sums, more);
  } else if constexpr (U == 4) {
    Sums<M, V> a = {}, b = {}, c = {};
    while (k + 4 <= steps) step(sums), step(a), step(b), step(c);
    add_sums<M, V>(sums, a);
    add_sums<M, V>(b, c);
    add_sums<M, V>(sums, b);
  }
  while (k < steps) step(sums);
}

#if defined(ETX_INTEGER_LONE_ROWS)
template <int V>
inline void add_steps_in_order(Sums<1, V>& sums, const Tile& t, int64_t steps) {
  VecI parts[2 * V] = {};
  const int8_t* w = t.weight;
  const uint8_t* x = t.rows;
  for (int64_t k = 0; k < steps; ++k, w += kBlockBytes, x += kStepBytes) {
    int64_t numbers;
    memcpy(&numbers, x, sizeof(numbers));
    const VecI row = (VecI)_mm256_set1_epi64x(numbers);
    prefetch_bytes(w + kAhead);
    ETX_UNROLL
    for (int i = 0; i < 2 * V; ++i) parts[i] = dot_in_order(parts[i], row, w + i * 16);
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) sums[0][v] += join_in_order(parts[2 * v], parts[2 * v + 1]);
}
#endif

template <int M, int V>
inline void add_steps(Sums<M, V>& sums, const Tile& t, int64_t steps) {
#if defined(ETX_INTEGER_LONE_ROWS)
  if constexpr (M == 1) {
    if (t.is_lone) return add_steps_in_order<V>(sums, t, steps);
  }
#endif
  if constexpr (M > 1) {
    add_steps<M, V, false>(sums, t, steps);
  } else if (kStepBytes == kBlockDepth && t.held) {
    add_steps<M, V, false>(sums, t, steps);
  } else {
    add_steps<M, V, true>(sums, t, steps);
  }
}

/// A tile's place in a product.
struct Place {
  int64_t row;
  int64_t column;
  int64_t columns;  ///< Left of it; more than the tile has, or a part of its last block.
};

/// Where scales and sums of a group and of vector `v` of a tile lie.
inline int64_t operand_of(int64_t groups, const Place& at, int64_t group, int v) {
  const int64_t block = at.column + v / kParts * kBlockColumns;
  return block * groups + group * kBlockColumns + v % kParts * kLanes;
}

inline void store_up_to(float* p, VecF v, int64_t n) {
  if (n >= kLanes) return store(p, v);
  if (n > 0) store_part(p, v, static_cast<size_t>(n));
}

/// y = row scale * total + bias, within bounds.
template <int M, int V>
ETX_NOINLINE void finish_rows(const Product& p, VecF (&totals)[M][V], const Place& at) {
  const VecF least = splat(p.least), most = splat(p.most);
  float* y = p.y + at.row * p.y_stride + at.column;
  ETX_UNROLL
  for (int v = 0; v < V; ++v, y += kLanes) {
    const VecF bias = p.bias == nullptr ? splat(0.0f) : load(p.bias + at.column + v * kLanes);
    const int64_t n = at.columns - v * kLanes;
    for (int i = 0; i < M; ++i) {
      const VecF value = totals[i][v] * p.row_scales[at.row + i].scale + bias;
      store_up_to(y + i * p.y_stride, smallest(largest(value, least), most), n);
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_TILE_H_
