// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_INT4_H_
#define ETX_PORTABLE_INTEGER_INT4_H_

/// Products of gathered rows and int4 weights, in groups along the depth with scales of their own.

#include "isa/integer/level/gather.h"
#include "isa/integer/level/tile.h"

namespace etx::portable {
namespace {

#if defined(ETX_INTEGER_NIBBLES)
constexpr int64_t kScalesAhead = 2048;  ///< As far as the weights that they belong to.
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

#if defined(ETX_INTEGER_NIBBLE_WORDS)
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

/// Adds the products of a row at steps that belong together.
template <int V, int pairs, bool ahead>
inline void add_pairs_of_row(Sums<1, V>& sums, const int8_t* w, const uint8_t* x,
                             int64_t block_stride, const int8_t* soon) {
  VecI words[V];
  ETX_UNROLL
  for (int i = 0; i < pairs; ++i, w += kBlockBytes, x += 2 * kNibbleStepBytes) {
    Columns<V> columns(w, block_stride);
    // Loaded once, and added in this order: others need more registers than there are.
    ETX_UNROLL
    for (int v = 0; v < V; ++v) __asm__("" : "+x"(columns.bytes[v]));
    const Nibbles<V> b(columns);
    if (ahead) prefetch_bytes(soon + i * kBlockBytes);
    const VecI low = splat(load_int(x)), high = splat(load_int(x + kNibbleStepBytes));
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const VecI product = multiply_pairs(b.low[v], low);
      words[v] = i == 0 ? product : add_words(words[v], product);
      words[v] = add_words(words[v], multiply_pairs(b.high[v], high));
      __asm__("" : "+x"(words[v]));
    }
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) sums[0][v] += add_pairs(words[v]);
}
constexpr int kRestPairs = 0;  ///< Of what bytes did not hold; more need too many registers.
#else
inline VecI dot_nibbles(VecI sum, VecI nibbles, VecI row) {
#if ETX_SIMD_BYTES == 64
  return (VecI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)nibbles, (__m512i)row);
#else
  return (VecI)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)nibbles, (__m256i)row);
#endif
}

/// The same of int4, whose numbers are 8 larger: steps [begin, end), `begin` even.
template <int M, int V>
inline void add_steps_int4(Sums<M, V>& sums, const Tile& t, int64_t begin, int64_t end) {
  const RowPointers<M> rows(t);
  const int8_t* w = t.weight + begin / 2 * kBlockBytes;
  for (int64_t k = begin; k < end; k += 2, w += kBlockBytes) {
    const Nibbles<V> b(Columns<V>(w, t.block_stride));
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      const uint8_t* const x = rows.at(i, k);
      const VecI low = splat(load_int(x)), high = splat(load_int(x + kNibbleStepBytes));
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        sums[i][v] = dot_nibbles(dot_nibbles(sums[i][v], b.low[v], low), b.high[v], high);
      }
    }
  }
}

/// Adds the products of a row at steps that belong together. High nibbles stay where they are, so
/// that their sum is 16 times as large.
template <int V, int pairs, bool ahead>
inline void add_pairs_of_row(Sums<1, V>& sums, const int8_t* w, const uint8_t* x,
                             int64_t block_stride, const int8_t* soon) {
  const VecI lower = splat(0x0F0F0F0F);
  VecI more[V] = {};
  ETX_UNROLL
  for (int i = 0; i < pairs; ++i, w += kBlockBytes, x += 2 * kNibbleStepBytes) {
    Columns<V> columns(w, block_stride);
    const VecI low = splat(load_int(x)), high = splat(load_int(x + kNibbleStepBytes));
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      if (ahead) prefetch_bytes(soon + i * kBlockBytes + v / kParts * block_stride);
      __asm__("" : "+v"(columns.bytes[v]));  // Loaded once.
      sums[0][v] = dot_nibbles(sums[0][v], columns.bytes[v] & lower, low);
      more[v] = dot_nibbles(more[v], columns.bytes[v] & ~lower, high);
    }
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) sums[0][v] += more[v] >> 4;
}
constexpr int kRestPairs = kPairSteps / 2;
#endif

template <int V>
ETX_NOINLINE void add_each_pair(Sums<1, V>& sums, const int8_t* w, const uint8_t* x,
                                int64_t block_stride, int64_t pairs) {
  for (int64_t i = 0; i < pairs; ++i, w += kBlockBytes, x += 2 * kNibbleStepBytes) {
    add_pairs_of_row<V, 1, false>(sums, w, x, block_stride, nullptr);
  }
}

/// Adds the products of `most` pairs of steps, or of fewer with sums in memory.
template <int V, int most, bool ahead>
inline void add_pairs_up_to(Sums<1, V>& sums, const int8_t* w, const uint8_t* x,
                            int64_t block_stride, int64_t pairs, const int8_t* soon) {
  if (most > 0 && pairs == most) {
    return add_pairs_of_row<V, most, ahead>(sums, w, x, block_stride, soon);
  }
  Sums<1, V> few = {};
  add_each_pair<V>(few, w, x, block_stride, pairs);
  add_sums<1, V>(sums, few);
}

inline VecF load_bfloat16(const uint16_t* p) {
#if ETX_SIMD_BYTES == 64
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
  return (VecF)_mm512_slli_epi32(wide, 16);
#else
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
  return (VecF)_mm256_slli_epi32(wide, 16);
#endif
}

/// The product of a row that `subtract_offset` changed.
template <int V>
ETX_NOINLINE void run_one_row(const Product& p, const Tile& t, const Place& at) {
  const int8_t* w = t.weight;
  const int8_t* soon = w + t.ahead;
  const uint8_t* x = t.rows;
  const uint16_t* const narrow = p.narrow_scale;
  int64_t scale = at.column * p.groups;
  const int32_t* group_sum = p.group_sums + at.row * p.groups;
  const int64_t rest = p.steps * kNibbleStepBytes, block_stride = t.block_stride;
  const int64_t group_steps = p.group_steps, next = p.groups * kBlockColumns;
  VecF own[V];
  ETX_UNROLL
  for (VecF& total : own) total = splat(0.0f);
  for (int64_t left = p.steps; left > 0; left -= group_steps, scale += kBlockColumns) {
    Sums<1, V> sums;
    const VecI excess = splat(*group_sum++ * 8);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) sums[0][v] = -excess;
    for (int64_t k = left < group_steps ? left : group_steps; k > 0; k -= kPairSteps) {
      const int64_t pairs = k < kPairSteps ? k / 2 : kPairSteps / 2;
      add_pairs_up_to<V, kPairSteps / 2, true>(sums, w, x, block_stride, pairs, soon);
      const __m256i more = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + rest));
      if (!_mm256_testz_si256(more, more)) {
        add_pairs_up_to<V, kRestPairs, false>(sums, w, x + rest, block_stride, pairs, nullptr);
      }
      w += pairs * kBlockBytes, x += pairs * 2 * kNibbleStepBytes;
      soon += pairs * kBlockBytes;
    }
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t own_scale = scale + v / kParts * next + v % kParts * kLanes;
      if (narrow != nullptr) prefetch_bytes(narrow + own_scale + kScalesAhead);
      const VecF factor =
          narrow == nullptr ? load(p.scale + own_scale) : load_bfloat16(narrow + own_scale);
      own[v] = own[v] + to_floats(sums[0][v]) * factor;
    }
  }
  const bool negated = is_negated(p.row_scales[at.row].offset);
  VecF totals[1][V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) totals[0][v] = negated ? splat(0.0f) - own[v] : own[v];
  finish_rows<1, V>(p, totals, at);
}

template <int M, int V>
inline void add_group(Sums<M, V>& sums, const Product&, const Tile& t, const Place&, int64_t begin,
                      int64_t end) {
  add_steps_int4<M, V>(sums, t, begin, end);
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

/// Adds the products of a row, less those of a row of offsets. Numbers up to 15 of 8 steps are
/// added before they are multiplied by the offset: bytes hold them.
template <int V>
inline void add_one_row(Sums<1, V>& sums, const Product& p, const Tile& t, const Place& at,
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

template <int M, int V>
inline void add_group(Sums<M, V>& sums, const Product& p, const Tile& t, const Place& at,
                      int64_t begin, int64_t end) {
  if constexpr (M == 1) {
    add_one_row<V>(sums, p, t, at, begin, end);
  } else {
    add_steps_int4<M, V>(sums, t, begin, end);
  }
}
#endif

/// With u a gathered number, z the row's offset and w8 = w + 8: the sum of (u - z) w is that of
/// u w8, less z w's and 8 u's. One row alone sums z w8 itself instead of reading sums of w.
struct ToFloatsInt4 {
  static constexpr bool kHalves = false;
  static constexpr int kBlockRows = kTileRows > 4 ? 4 : kTileRows;

  template <int M, int V>
  ETX_NOINLINE static void run(const Product& p, const Tile& t, const Place& at) {
#if defined(ETX_INTEGER_NIBBLES)
    if constexpr (M == 1) {
      return run_one_row<V>(p, t, at);
    }
#endif
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
      add_group<M, V>(sums, p, t, at, begin, end);
      ETX_UNROLL
      for (int v = 0; v < V; ++v) {
        const int64_t column = operand_of(p.groups, at, g, v);
        const VecF scale = load(p.scale + column);
        const VecI weights = M == 1 ? VecI{} : load_ints(p.sums + column);
        ETX_UNROLL
        for (int i = 0; i < M; ++i) {
          const int32_t offset = p.row_scales[at.row + i].offset;
          const int32_t excess = p.group_sums[(at.row + i) * p.groups + g] * 8;
          VecI sum = sums[i][v] - excess;
          sum = M == 1 ? sum + offset * 8 * static_cast<int32_t>((end - begin) * kBlockDepth)
                       : without_offset(sum, weights, offset);
          totals[i][v] = totals[i][v] + to_floats(sum) * scale;
        }
      }
    }
    finish_rows<M, V>(p, totals, at);
  }
};

#if defined(ETX_INTEGER_NIBBLES)
ETX_NOINLINE int32_t sum_of(const int8_t* x, int64_t n) {
  VecI sums = {};
  for (; n >= kLanes; n -= kLanes, x += kLanes) sums += widen_bytes(x);
  if (n > 0) sums += widen_bytes_part(x, n);
  int32_t t[kLanes], sum = 0;
  memcpy(t, &sums, sizeof(t));
  for (const int32_t number : t) sum += number;
  return sum;
}
#endif

/// Sums of the numbers of gathered rows.
void sum_groups(const Product& p, int32_t* sums) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const auto* const x = reinterpret_cast<const GatheredForInt4*>(p.rows + row * p.row_stride);
    for (int64_t g = 0; g < p.groups; ++g) {
      const int64_t begin = g * p.group_steps, end = begin + p.group_steps;
      const int64_t last = (end < p.steps ? end : p.steps) * kBlockDepth;
      int32_t sum = 0;
#if defined(ETX_INTEGER_NIBBLES)
      sum = sum_of(x + begin * kBlockDepth, last - begin * kBlockDepth);
      if (is_single(row, p.num_rows)) {
        const GatheredForInt4* const more = x + p.steps * kNibbleStepBytes;
        sum += sum_of(more + begin * kBlockDepth, last - begin * kBlockDepth);
      }
#else
      for (int64_t k = begin * kBlockDepth; k < last; ++k) sum += x[k];
#endif
      *sums++ = sum;
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_INT4_H_
