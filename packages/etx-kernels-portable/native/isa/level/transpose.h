// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_TRANSPOSE_H_
#define ETX_PORTABLE_LEVEL_TRANSPOSE_H_

/// Transposition in blocks of 4 x 4.

#include "isa/simd.h"

namespace etx::portable {
namespace {

#if defined(ETX_SIMD_VECTORS) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ETX_HAS_SHUFFLE 1
#endif
#endif

#if defined(ETX_HAS_SHUFFLE)
typedef float Vec4 __attribute__((vector_size(16)));
typedef float Vec4Unaligned __attribute__((vector_size(16), aligned(4), may_alias));
inline Vec4 load4(const float* p) { return *reinterpret_cast<const Vec4Unaligned*>(p); }
inline void store4(float* p, Vec4 v) { *reinterpret_cast<Vec4Unaligned*>(p) = v; }

inline void transpose4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const Vec4 a = load4(from), b = load4(from + from_stride);
  const Vec4 c = load4(from + 2 * from_stride), d = load4(from + 3 * from_stride);
  const Vec4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Vec4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vec4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Vec4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store4(to, __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5));
  store4(to + to_stride, __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7));
  store4(to + 2 * to_stride, __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5));
  store4(to + 3 * to_stride, __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7));
}
#else
inline void transpose4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}
#endif

/// to[j][i] = from[i][j] for i < rows and j < columns.
ETX_NOINLINE void store_transposed(const float* from, int64_t from_stride, int64_t rows,
                                   int64_t columns, float* to, int64_t to_stride) {
  if (columns < 4) {
    for (int64_t j = 0; j < columns; ++j, to += to_stride) {
      for (int64_t i = 0; i < rows; ++i) to[i] = from[i * from_stride + j];
    }
    return;
  }
  if (rows < 4) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
    return;
  }
  for (int64_t row = 0; row < rows; row += 4) {
    const int64_t i = row + 4 > rows ? rows - 4 : row;
    for (int64_t column = 0; column < columns; column += 4) {
      const int64_t j = column + 4 > columns ? columns - 4 : column;
      transpose4(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_TRANSPOSE_H_
