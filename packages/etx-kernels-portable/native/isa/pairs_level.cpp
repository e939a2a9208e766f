// SPDX-License-Identifier: BSD-3-Clause
/// Compiled for AVX-512 with dot products of bfloat16.

#include "isa/pairs.h"

#include "isa/level/row_pointers.h"
#include "isa/level/transpose.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

constexpr int kRows = 12;

/// M is 1 or divisible by 4.
template <int M>
void store_part(const PairProduct& p, const float* tile, int64_t row) {
  const int columns = static_cast<int>(p.columns);
  if (!p.transposed) {
    for (int i = 0; i < M; ++i) {
      memcpy(p.c + (row + i) * p.c_stride, tile + i * kPairColumns,
             static_cast<size_t>(columns) * sizeof(float));
    }
    return;
  }
  int j = 0;
  for (; M > 1 && j + 4 <= columns; j += 4) {
    for (int i = 0; i < M; i += 4) {
      transpose4(tile + i * kPairColumns + j, kPairColumns, p.c + j * p.c_stride + row + i,
                 p.c_stride);
    }
  }
  for (; j < columns; ++j) {
    for (int i = 0; i < M; ++i) p.c[j * p.c_stride + row + i] = tile[i * kPairColumns + j];
  }
}

template <int M>
void pair_tile(const PairProduct& p, int64_t row) {
  __m512 acc[M][2];
  ETX_UNROLL
  for (int i = 0; i < M; ++i) {
    acc[i][0] = acc[i][1] = _mm512_set1_ps(p.bias == nullptr ? 0.0f : p.bias[row + i]);
  }
  const RowPointers<uint16_t, M> rows(p.a + row * p.a_stride, p.a_stride);
  const uint16_t* b = p.panel;
  for (int64_t k = 0; k < p.pairs; ++k, b += 2 * kPairColumns) {
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
    const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + kPairColumns);
    prefetch(b + 16 * kPairColumns);
    prefetch(b + 17 * kPairColumns);
    ETX_UNROLL
    for (int i = 0; i < M; ++i) {
      int32_t two;
      memcpy(&two, rows.address(i, 2 * k), sizeof(two));
      const __m512bh a = (__m512bh)_mm512_set1_epi32(two);
      acc[i][0] = _mm512_dpbf16_ps(acc[i][0], a, b0);
      acc[i][1] = _mm512_dpbf16_ps(acc[i][1], a, b1);
    }
  }
  if (!p.transposed && p.columns == kPairColumns) {
    for (int i = 0; i < M; ++i) {
      _mm512_storeu_ps(p.c + (row + i) * p.c_stride, acc[i][0]);
      _mm512_storeu_ps(p.c + (row + i) * p.c_stride + 16, acc[i][1]);
    }
    return;
  }
  alignas(64) float tile[M * kPairColumns];
  memcpy(tile, acc, sizeof(tile));
  store_part<M>(p, tile, row);
}

void multiply(const PairProduct& p) {
  int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) pair_tile<kRows>(p, row);
  for (; row + 4 <= p.rows; row += 4) pair_tile<4>(p, row);
  for (; row < p.rows; ++row) pair_tile<1>(p, row);
}

void pack_pairs(const uint16_t* b, int64_t stride, int64_t columns, int64_t pairs,
                uint16_t* panel) {
  const __mmask32 mask = columns == 32 ? ~0u : (1u << columns) - 1u;
  const __m512i even = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                        8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i later = _mm512_add_epi16(even, _mm512_set1_epi16(16));
  for (int64_t k = 0; k < pairs; ++k, b += 2 * stride, panel += 2 * kPairColumns) {
    const __m512i x = _mm512_maskz_loadu_epi16(mask, b);
    const __m512i y = _mm512_maskz_loadu_epi16(mask, b + stride);
    _mm512_storeu_si512(panel, _mm512_permutex2var_epi16(x, even, y));
    _mm512_storeu_si512(panel + kPairColumns, _mm512_permutex2var_epi16(x, later, y));
  }
}

}  // namespace

extern const Pairs pairs_v4;
const Pairs pairs_v4 = {multiply, pack_pairs};

}  // namespace etx::portable
