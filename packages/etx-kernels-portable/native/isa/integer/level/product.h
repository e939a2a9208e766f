// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_PRODUCT_H_
#define ETX_PORTABLE_INTEGER_PRODUCT_H_

/// Products of gathered rows and packed weights: kTileRows rows with kPanelBlocks blocks of columns
/// at once, whose sums stay in registers.

#include "isa/integer/level/dot.h"
#include "isa/integer/level/matrix_dot.h"
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

/// Independent sums that are added in turns, so that additions do not wait for each other.
template <int M, int V>
constexpr int kChains = M * V >= 8 ? 1 : (M * V >= 4 ? 2 : 4);

template <int M, int V>
inline void add_sums(Sums<M, V>& sums, const Sums<M, V>& more) {
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) sums[i][v] += more[i][v];
  }
}

template <int M, int V>
inline void add_steps(Sums<M, V>& sums, const Tile& t, int64_t steps) {
  constexpr int U = kChains<M, V>;
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight;
  const int8_t* next = t.next;
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
    if (M == 1 && kStepBytes != kBlockDepth) prefetch_bytes(w + kAhead);
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

#if defined(ETX_INTEGER_NIBBLES)
constexpr int64_t kPairSteps = 8;  ///< Steps whose sums of pairs int16 holds: 8 * 2 * 15 * 128.

/// The nibbles of a tile's blocks at two steps.
template <int V>
struct Nibbles {
  VecI low[V], high[V];
  explicit Nibbles(const Columns<V>& columns) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      low[v] = columns.bytes[v] & 0x0F0F0F0F;
      high[v] = to_signed(to_unsigned(columns.bytes[v]) >> 4) & 0x0F0F0F0F;
    }
  }
};

inline VecI multiply_pairs(VecI nibbles, VecI row) {
  return (VecI)_mm256_maddubs_epi16((__m256i)nibbles, (__m256i)row);
}
inline VecI add_words(VecI a, VecI b) { return (VecI)_mm256_add_epi16((__m256i)a, (__m256i)b); }
inline VecI add_pairs(VecI words) {
  return (VecI)_mm256_madd_epi16((__m256i)words, _mm256_set1_epi16(1));
}

/// The same of int4, whose numbers are 8 larger: steps [begin, end), `begin` even.
template <int M, int V>
inline void add_steps_int4(Sums<M, V>& sums, const Tile& t, int64_t begin, int64_t end) {
  const int8_t* w = t.weight + begin / 2 * kBlockBytes;
  for (int64_t k = begin; k < end;) {
    const int64_t until = end - k > kPairSteps ? k + kPairSteps : end;
    Sums<M, V> words = {};
    for (; k < until; k += 2, w += kBlockBytes) {
      const Nibbles<V> b(Columns<V>(w, t.block_stride));
      const uint8_t* x = t.rows + k * kNibbleStepBytes;
      ETX_UNROLL
      for (int i = 0; i < M; ++i, x += t.row_stride) {
        const VecI low = splat(load_int(x)), high = splat(load_int(x + kNibbleStepBytes));
        ETX_UNROLL
        for (int v = 0; v < V; ++v) {
          words[i][v] = add_words(words[i][v], multiply_pairs(b.low[v], low));
          words[i][v] = add_words(words[i][v], multiply_pairs(b.high[v], high));
        }
      }
    }
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      ETX_UNROLL
      for (int v = 0; v < V; ++v) sums[i][v] += add_pairs(words[i][v]);
    }
  }
}
#else
/// The same of int4, whose numbers are 8 larger: steps [begin, end), `begin` even.
template <int M, int V>
inline void add_steps_int4(Sums<M, V>& sums, const Tile& t, int64_t begin, int64_t end) {
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight + begin / 2 * kBlockBytes;
#if defined(ETX_INTEGER_MATRICES)
  PairSums<M, V> pairs = {};
  for (int64_t k = begin; k < end; k += 2, w += kBlockBytes) {
    const Columns<V> columns(w, t.block_stride);
    VecI low[V], high[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      low[v] = columns.bytes[v] & 0x0F0F0F0F;
      high[v] = to_signed(to_unsigned(columns.bytes[v]) >> 4) & 0x0F0F0F0F;
    }
    add_pairs<M, V>(pairs, low, high, [&](int i) { return rows.at(i, k); });
  }
  add_to_rows<M, V>(sums, pairs);
#else
  for (int64_t k = begin; k < end; k += 2, w += kBlockBytes) {
    const Columns<V> columns(w, t.block_stride);
    VecI part[V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) part[v] = columns.bytes[v] & 0x0F0F0F0F;
    add_step<M, V>(sums, rows, k, part);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      part[v] = to_signed(to_unsigned(columns.bytes[v]) >> 4) & 0x0F0F0F0F;
    }
    add_step<M, V>(sums, rows, k + 1, part);
  }
#endif
}
#endif

/// A tile's place in a product.
struct Place {
  int64_t row;
  int64_t column;
  int64_t columns;  ///< Left of it; more than the tile has, or a part of its last block.
};

inline void store_up_to(float* p, VecF v, int64_t n) {
  if (n >= kLanes) return store(p, v);
  if (n > 0) store_part(p, v, static_cast<size_t>(n));
}

#if ETX_SIMD_BYTES < 32
/// Stores a row of a tile of which the last columns are none.
ETX_NOINLINE void store_row_part(int8_t* out, const VecI* bytes, int64_t n) {
  for (int v = 0; n > 0; ++v, n -= kLanes, out += kLanes) {
    store_bytes_part(out, bytes[v], n < kLanes ? n : kLanes);
  }
}
#endif

struct ToBytes {
  static constexpr bool kLinear = false;
  static constexpr bool kHalves = kParts == 2;  ///< Of the last block only columns that are.

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
#if ETX_SIMD_BYTES == 32
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
#if ETX_SIMD_BYTES == 64
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t n = at.columns - v * kLanes;
      const __mmask16 mask = first(static_cast<size_t>(n < 0 ? 0 : (n < kLanes ? n : kLanes)));
      ETX_UNROLL
      for (int i = 0; i < M; ++i) {
        _mm512_mask_cvtepi32_storeu_epi8(out + i * p.out_stride + v * kLanes, mask,
                                         (__m512i)sums[i][v]);
      }
    }
#else
    for (int i = 0; i < M; ++i) store_row_part(out + i * p.out_stride, sums[i], at.columns);
#endif
#endif
  }
};

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

struct ToFloats {
  static constexpr bool kLinear = false, kHalves = false;

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
        totals[i][v] = to_floats(sums[i][v] - weights * p.row_scales[at.row + i].offset) * scale;
      }
    }
    finish_rows<M, V>(p, totals, at);
  }
};

/// With u a gathered number, z the row's offset and w8 = w + 8: the sum of (u - z) w is that of
/// u w8, less z w's and 8 u's. One row alone sums z w8 itself instead of reading sums of w.
struct ToFloatsInt4 {
  static constexpr bool kLinear = true, kHalves = false;

  template <int M, int V>
  ETX_NOINLINE static void run(const Product& p, const Tile& t, const Place& at) {
    VecF totals[M][V];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      ETX_UNROLL
      for (int i = 0; i < M; ++i) totals[i][v] = splat(0.0f);
    }
    for (int64_t g = 0; g < p.groups; ++g) {
      const int64_t begin = g * p.group_steps;
      const int64_t end = begin + p.group_steps < p.steps ? begin + p.group_steps : p.steps;
      Sums<M, V> sums = {};
      if constexpr (M == 1) {
        add_one_row<V>(sums, p, t, at, begin, end);
      } else {
        add_steps_int4<M, V>(sums, t, begin, end);
      }
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        const int64_t column = g * p.group_stride + at.column + v * kLanes;
        const VecF scale = load(p.scale + column);
        prefetch_bytes(p.scale + column + V * kLanes);
        const VecI weights = M == 1 ? VecI{} : load_ints(p.sums + column);
        ETX_UNROLL
        for (int i = 0; i < M; ++i) {
          const int32_t offset = p.row_scales[at.row + i].offset;
          const int32_t excess = p.group_sums[(at.row + i) * p.groups + g] * 8;
          VecI sum = sums[i][v] - excess;
          sum = M == 1 ? sum + offset * 8 * static_cast<int32_t>((end - begin) * kBlockDepth)
                       : sum - weights * offset;
          totals[i][v] = totals[i][v] + to_floats(sum) * scale;
        }
      }
    }
    finish_rows<M, V>(p, totals, at);
  }

  /// Adds the products of a row, less those of a row of offsets. Numbers up to 15 of 8 steps are
  /// added before they are multiplied by the offset: bytes hold them.
#if defined(ETX_INTEGER_NIBBLES)
  template <int V>
  static inline void add_one_row(Sums<1, V>& sums, const Product& p, const Tile& t, const Place& at,
                                 int64_t begin, int64_t end) {
    const VecI zero = splat(repeat(p.row_scales[at.row].offset & 0xFF, 0x01010101u));
    const int8_t* w = t.weight + begin / 2 * kBlockBytes;
    for (int64_t k = begin; k < end;) {
      const int64_t until = end - k > kPairSteps ? k + kPairSteps : end;
      VecI words[V] = {}, both[V] = {};
      for (; k < until; k += 2, w += kBlockBytes) {
        const Nibbles<V> b(Columns<V>(w, t.block_stride));
        prefetch_bytes(w + kAhead);
        const uint8_t* const x = t.rows + k * kNibbleStepBytes;
        const VecI low = splat(load_int(x)), high = splat(load_int(x + kNibbleStepBytes));
        ETX_UNROLL
        for (int v = 0; v < V; ++v) {
          words[v] = add_words(words[v], multiply_pairs(b.low[v], low));
          words[v] = add_words(words[v], multiply_pairs(b.high[v], high));
          both[v] += b.low[v] + b.high[v];
        }
      }
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        sums[0][v] += add_pairs(words[v]) - add_pairs(multiply_pairs(both[v], zero));
      }
    }
  }
#else
  template <int V>
  static inline void add_one_row(Sums<1, V>& sums, const Product& p, const Tile& t, const Place& at,
                                 int64_t begin, int64_t end) {
    const RowPointers<1> rows(t);
    const Left zero(p.row_scales[at.row].offset);
    const int8_t* w = t.weight + begin / 2 * kBlockBytes;
    VecI less[V] = {}, more[V] = {};
    int64_t k = begin;
    const auto pair = [&](VecI(&both)[V]) {
      const Columns<V> columns(w, t.block_stride);
      const Left low(rows.at(0, k)), high(rows.at(0, k + 1));
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        const VecI b_low = columns.bytes[v] & 0x0F0F0F0F;
        const VecI b_high = to_signed(to_unsigned(columns.bytes[v]) >> 4) & 0x0F0F0F0F;
        sums[0][v] = dot(sums[0][v], low, Right(b_low));
        more[v] = dot(more[v], high, Right(b_high));
        both[v] += b_low + b_high;
      }
      k += 2, w += kBlockBytes;
    };
    const auto flush = [&](const VecI(&both)[V]) {
      ETX_UNROLL
      for (int v = 0; v < V; ++v) less[v] = dot(less[v], zero, Right(both[v]));
    };
    while (k + 8 <= end) {
      VecI both[V] = {};
      for (int i = 0; i < 4; ++i) prefetch_bytes(w + kAhead + i * kBlockBytes);
      pair(both), pair(both), pair(both), pair(both);
      flush(both);
    }
    while (k < end) {
      VecI both[V] = {};
      pair(both);
      flush(both);
    }
    ETX_UNROLL
    for (int v = 0; v < V; ++v) sums[0][v] += more[v] - less[v];
  }
#endif
};

/// Runs tiles of M rows with V vectors of columns and, for what is left, of fewer rows.
template <class Kind, int V, int M>
inline void run_rows(const Product& p, Tile& t, Place& at) {
  for (; p.num_rows - at.row >= M; at.row += M, t.rows += M * t.row_stride) {
    Kind::template run<M, V>(p, t, at);
  }
  if constexpr (M > 1) run_rows<Kind, V, (M > 4 ? 4 : M / 2)>(p, t, at);
}

/// Panel by panel, each with all rows: it stays in the nearest cache meanwhile. One row of a linear
/// kind takes block by block, so that all of the weight is one stream.
template <class Kind>
void run_product(const Product& p, int64_t block_stride) {
  const bool linear = Kind::kLinear && p.num_rows == 1;
  for (int64_t block = p.begin; block < p.end;) {
    const bool whole = !linear && p.end - block >= kPanelBlocks;
    const int64_t after = block + (whole ? kPanelBlocks : 1);
    const int8_t* const weight = p.weight + block * block_stride;
    const int8_t* const next = p.weight + (after < p.end ? after : p.begin) * block_stride;
    Tile t = {p.rows, p.row_stride, weight, block_stride, next};
    Place at = {0, block * kBlockColumns, p.columns - block * kBlockColumns};
    if (Kind::kHalves && at.columns <= kLanes) {
      run_rows<Kind, Kind::kHalves ? kParts / 2 : kParts, kTileRows>(p, t, at);
    } else if (whole) {
      run_rows<Kind, kPanelBlocks * kParts, kTileRows>(p, t, at);
    } else {
      run_rows<Kind, kParts, kTileRows>(p, t, at);
    }
    block = after;
  }
}

void product(const Product& p) { run_product<ToBytes>(p, p.steps * kBlockBytes); }
void float_product(const Product& p) { run_product<ToFloats>(p, p.steps * kBlockBytes); }

void float_product_int4(const Product& p) {
  run_product<ToFloatsInt4>(p, p.steps / 2 * kBlockBytes);
}

/// Sums of the numbers of gathered rows.
void sum_groups(const Product& p, int32_t* sums) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const auto* const x = reinterpret_cast<const GatheredForInt4*>(p.rows + row * p.row_stride);
    for (int64_t g = 0; g < p.groups; ++g) {
      const int64_t begin = g * p.group_steps, end = begin + p.group_steps;
      const int64_t last = (end < p.steps ? end : p.steps) * kBlockDepth;
      int32_t sum = 0;
      for (int64_t k = begin * kBlockDepth; k < last; ++k) sum += x[k];
      *sums++ = sum;
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_PRODUCT_H_
