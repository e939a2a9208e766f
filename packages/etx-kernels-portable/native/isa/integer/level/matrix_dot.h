// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_MATRIX_DOT_H_
#define ETX_PORTABLE_INTEGER_MATRIX_DOT_H_

/// Products of two rows and two columns at once, over eight of their depth (i8mm's smmla): two
/// blocks of a packed weight, interleaved, are four pairs of columns.

#include "isa/integer/level/dot.h"

#if defined(ETX_SIMD_VECTORS) && defined(__ARM_FEATURE_MATMUL_INT8)
#define ETX_INTEGER_MATRICES 1

namespace etx::portable {
namespace {

/// Sums of rows 2p and 2p + 1 with a vector's columns: its first two, then its last two, each row's
/// next to each other.
template <int M, int V>
using PairSums = int32x4_t[M / 2][V][2];

/// Adds the products of the vectors of two blocks; `row(i)` is where row `i` has its eight numbers.
template <int M, int V, typename Row>
inline void add_pairs(PairSums<M, V>& sums, const VecI (&first)[V], const VecI (&second)[V],
                      const Row& row) {
  int8x16_t rows[M / 2];
  ETX_UNROLL
  for (int p = 0; p < M / 2; ++p) {
    rows[p] = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(row(2 * p)), vld1_u8(row(2 * p + 1))));
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) {
    const int32x4_t a = (int32x4_t)first[v], b = (int32x4_t)second[v];
    const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(a, b));
    const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(a, b));
    ETX_UNROLL
    for (int p = 0; p < M / 2; ++p) {
      sums[p][v][0] = vmmlaq_s32(sums[p][v][0], rows[p], low);
      sums[p][v][1] = vmmlaq_s32(sums[p][v][1], rows[p], high);
    }
  }
}

/// Adds them to sums by row.
template <int M, int V>
inline void add_to_rows(VecI (&sums)[M][V], const PairSums<M, V>& pairs) {
  ETX_UNROLL
  for (int p = 0; p < M / 2; ++p) {
    ETX_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64x2_t a = vreinterpretq_s64_s32(pairs[p][v][0]);
      const int64x2_t b = vreinterpretq_s64_s32(pairs[p][v][1]);
      sums[2 * p][v] += (VecI)vzip1q_s64(a, b);
      sums[2 * p + 1][v] += (VecI)vzip2q_s64(a, b);
    }
  }
}

}  // namespace
}  // namespace etx::portable
#endif

#endif  // ETX_PORTABLE_INTEGER_MATRIX_DOT_H_
