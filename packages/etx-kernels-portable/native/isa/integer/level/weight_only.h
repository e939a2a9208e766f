// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_
#define ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_

/// Products of float rows and packed weights, which become floats in registers.

#include "isa/integer/level/product.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES == 64
constexpr int kFloatRows = 8;
#elif ETX_SIMD_BYTES == 32
constexpr int kFloatRows = 4;
#elif ETX_SIMD_BYTES == 16
constexpr int kFloatRows = 2;
#else
constexpr int kFloatRows = 1;
#endif

/// Of int4: what makes two's complement of numbers from 0 to 15 that are 8 larger.
constexpr int32_t kEights = static_cast<int32_t>(0x88888888u);

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

#if ETX_SIMD_BYTES == 64
#define ETX_SHUFFLE_BYTES(x, order) _mm512_shuffle_epi8((__m512i)(x), (__m512i)(order))
#elif ETX_SIMD_BYTES == 32
#define ETX_SHUFFLE_BYTES(x, order) _mm256_shuffle_epi8((__m256i)(x), (__m256i)(order))
#elif ETX_SIMD_BYTES == 16 && defined(__SSSE3__)
#define ETX_SHUFFLE_BYTES(x, order) _mm_shuffle_epi8((__m128i)(x), (__m128i)(order))
#endif

#if defined(ETX_SHUFFLE_BYTES)
/// What numbers are multiplied by: they stand highest in their lanes.
constexpr float unit_of(bool nibble) { return nibble ? 0x1p-28f : 0x1p-24f; }

/// Where a shuffle finds byte `i` of each lane, the highest of its result.
struct ByteOrder {
  alignas(ETX_SIMD_BYTES) int32_t lanes[4][kLanes];
  constexpr ByteOrder() : lanes{} {
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < kLanes; ++k) lanes[i][k] = (k % 4 * 4 + i) << 24 | 0x808080;
    }
  }
};
constexpr ByteOrder kByteOrder;

/// Byte `i` of each lane; of nibbles, the low ones are zeros.
template <bool nibble, int i>
inline VecF number_of(VecI bytes) {
  return to_floats((VecI)ETX_SHUFFLE_BYTES(bytes, load_ints(kByteOrder.lanes[i])));
}
constexpr uint32_t kHighNibbles = 0xF0F0F0F0u;
#else
constexpr float unit_of(bool) { return 1; }

/// Number `i` of each lane: a byte, or the high nibble of one as two's complement.
template <bool nibble, int i>
inline VecF number_of(VecI bytes) {
  if constexpr (!nibble) return to_floats(byte_of<i>(bytes));
  return to_floats(to_signed(to_unsigned(bytes) << ETX_BYTE_SHIFT(i)) >> 28);
}
constexpr uint32_t kHighNibbles = 0xFFFFFFFFu;
#endif

template <int M, int V>
struct FloatSums {
  VecF v[turns(M, V)][M][V];
  FloatSums() {
    ETX_UNROLL
    for (auto& turn : v) {
      ETX_UNROLL
      for (auto& row : turn) {
        ETX_UNROLL
        for (VecF& sum : row) sum = splat(0.0f);
      }
    }
  }
  VecF at(int row, int vector) const {
    VecF sum = v[0][row][vector];
    constexpr int kTurns = turns(M, V);
    ETX_UNROLL
    for (int u = 1; u < kTurns; ++u) sum = sum + v[u][row][vector];
    return sum;
  }
};

template <int M, int V, bool nibble, int i>
ETX_INLINE void add_depth(FloatSums<M, V>& sums, const float* x, int64_t x_stride,
                          const VecI (&bytes)[V]) {
  VecF w[V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) w[v] = number_of<nibble, i>(bytes[v]);
  VecF(&own)[M][V] = sums.v[i % turns(M, V)];
  ETX_UNROLL
  for (int m = 0; m < M; ++m) {
    const VecF a = splat(x[m * x_stride + i]);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) own[m][v] = add_product(own[m][v], a, w[v]);
  }
}

template <int M, int V, bool nibble>
ETX_INLINE void add_block(FloatSums<M, V>& sums, const float* x, int64_t x_stride,
                          const VecI (&bytes)[V]) {
  add_depth<M, V, nibble, 0>(sums, x, x_stride, bytes);
  add_depth<M, V, nibble, 1>(sums, x, x_stride, bytes);
  add_depth<M, V, nibble, 2>(sums, x, x_stride, bytes);
  add_depth<M, V, nibble, 3>(sums, x, x_stride, bytes);
}

/// Adds blocks [begin, end) of the depth, of int4 two at a time.
template <int M, int V, bool int4>
inline void add_blocks(FloatSums<M, V>& sums, const FloatProduct& p, int64_t row,
                       const int8_t* weight, int64_t block_stride, int64_t begin, int64_t end) {
  const float* x = p.x + row * p.x_stride + begin * kBlockDepth;
  const int8_t* w = weight + (int4 ? begin / 2 : begin) * kBlockBytes;
  for (int64_t k = begin; k < end; k += int4 ? 2 : 1, w += kBlockBytes) {
    const Columns<V> columns(w, block_stride);
    if (M == 1) prefetch_bytes(w + kAhead);
    if constexpr (int4) {
      VecI part[V];
      ETX_UNROLL
      for (int v = 0; v < V; ++v)
        part[v] = to_signed(to_unsigned(columns.bytes[v] ^ kEights) << 4 & kHighNibbles);
      // Both nibbles by the same instructions, of which there are many.
      for (int64_t half = 0; half < 2; ++half) {
        add_block<M, V, true>(sums, x + half * kBlockDepth, p.x_stride, part);
        ETX_UNROLL
        for (int v = 0; v < V; ++v)
          part[v] = (columns.bytes[v] ^ kEights) & static_cast<int32_t>(kHighNibbles);
      }
    } else {
      add_block<M, V, false>(sums, x, p.x_stride, columns.bytes);
    }
    x += (int4 ? 2 : 1) * kBlockDepth;
  }
}

ETX_NOINLINE void finish_floats(const FloatProduct& p, const VecF* total, int64_t row,
                                const Place& at, int vectors) {
  const VecF least = splat(p.least), most = splat(p.most);
  float* const y = p.y + row * p.y_stride + at.column;
  for (int v = 0; v < vectors; ++v) {
    VecF value = total[v];
    if (p.bias != nullptr) value = value + load(p.bias + at.column + v * kLanes);
    store_up_to(y + v * kLanes, smallest(largest(value, least), most), at.columns - v * kLanes);
  }
}

template <int M, int V, bool int4>
ETX_NOINLINE void float_tile(const FloatProduct& p, const int8_t* weight, int64_t block_stride,
                             const Place& at) {
  VecF totals[M][V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) {
    ETX_UNROLL
    for (int m = 0; m < M; ++m) totals[m][v] = splat(0.0f);
  }
  const int64_t groups = int4 ? p.groups : 1, group_steps = int4 ? p.group_steps : p.steps;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = g * group_steps;
    const int64_t end = begin + group_steps < p.steps ? begin + group_steps : p.steps;
    FloatSums<M, V> sums;
    add_blocks<M, V, int4>(sums, p, at.row, weight, block_stride, begin, end);
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const VecF scale = load(p.scale + operand_of(groups, at, g, v)) * unit_of(int4);
      ETX_UNROLL
      for (int m = 0; m < M; ++m) {
        totals[m][v] = add_product(totals[m][v], sums.at(m, v), scale);
      }
    }
  }
  for (int m = 0; m < M; ++m) finish_floats(p, totals[m], at.row + m, at, V);
}

/// Of one block few rows are left, or none: a tile for each.
constexpr int fewer_rows(int rows, int blocks) {
  return rows > 4 ? 4 : (blocks == 1 && kPanelBlocks > 1 ? 1 : rows / 2);
}

template <bool int4, int P, int M>
inline void run_float_rows(const FloatProduct& p, const int8_t* weight, int64_t block_stride,
                           Place& at) {
  for (; p.num_rows - at.row >= M; at.row += M) {
    float_tile<M, P * kParts, int4>(p, weight, block_stride, at);
  }
  if constexpr (M > 1) {
    run_float_rows<int4, P, fewer_rows(M, P)>(p, weight, block_stride, at);
  }
}

template <bool int4>
void run_weight_only(const FloatProduct& p) {
  const int64_t block_stride = (int4 ? p.steps / 2 : p.steps) * kBlockBytes;
  for (int64_t block = p.begin; block < p.end;) {
    const bool whole = p.num_rows > 1 && p.end - block >= kPanelBlocks;
    const int8_t* const weight = p.weight + block * block_stride;
    Place at = {0, block * kBlockColumns, p.columns - block * kBlockColumns};
    if (whole) {
      run_float_rows<int4, kPanelBlocks, kFloatRows>(p, weight, block_stride, at);
    } else {
      run_float_rows<int4, 1, (kFloatRows > 4 ? 4 : kFloatRows)>(p, weight, block_stride, at);
    }
    block += whole ? kPanelBlocks : 1;
  }
}

void weight_only(const FloatProduct& p) { run_weight_only<false>(p); }
void weight_only_int4(const FloatProduct& p) { run_weight_only<true>(p); }

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_WEIGHT_ONLY_H_
