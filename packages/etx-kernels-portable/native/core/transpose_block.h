// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_TRANSPOSE_BLOCK_H_
#define ETX_PORTABLE_TRANSPOSE_BLOCK_H_

#include <cstdint>
#include <cstring>
#include <utility>

namespace etx::portable {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ETX_HAS_SHUFFLE 1
#endif
#endif

/// Elements along the edge of the blocks that `transpose_block` transposes: a vector of 16 bytes.
template <typename T>
constexpr int kBlockEdge = 16 / static_cast<int>(sizeof(T));

#if defined(ETX_HAS_SHUFFLE)
/// Lanes of the lower (0) or upper (1) halves of two vectors, alternately.
template <typename V, int half, int... i>
inline V interleave(V a, V b, std::integer_sequence<int, i...>) {
  constexpr int kLanes = sizeof...(i);
  return __builtin_shufflevector(a, b, (i / 2 + half * kLanes / 2 + (i % 2 == 1 ? kLanes : 0))...);
}

/// dst[r][c] = src[c][r] for a square block; strides in bytes, any alignment. Each of the
/// log2(edge) rounds interleaves vector k with vector k + edge / 2.
template <typename T>
inline void transpose_block(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr int kEdge = kBlockEdge<T>;
  typedef T V __attribute__((vector_size(16)));
  constexpr auto kLanes = std::make_integer_sequence<int, kEdge>{};
  V rows[kEdge];
  V next[kEdge];
  for (int i = 0; i < kEdge; ++i) std::memcpy(&rows[i], src + i * src_stride, sizeof(V));
  for (int round = 1; round < kEdge; round *= 2) {
    for (int i = 0; i < kEdge / 2; ++i) {
      next[2 * i] = interleave<V, 0>(rows[i], rows[i + kEdge / 2], kLanes);
      next[2 * i + 1] = interleave<V, 1>(rows[i], rows[i + kEdge / 2], kLanes);
    }
    for (int i = 0; i < kEdge; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < kEdge; ++i) std::memcpy(dst + i * dst_stride, &rows[i], sizeof(V));
}
#else
template <typename T>
inline void transpose_block(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr int kEdge = kBlockEdge<T>;
  T block[kEdge][kEdge];
  for (int c = 0; c < kEdge; ++c) {
    T row[kEdge];
    std::memcpy(row, src + c * src_stride, sizeof(row));
    for (int r = 0; r < kEdge; ++r) block[r][c] = row[r];
  }
  for (int r = 0; r < kEdge; ++r) std::memcpy(dst + r * dst_stride, block[r], sizeof(block[r]));
}
#endif

}  // namespace etx::portable

#endif  // ETX_PORTABLE_TRANSPOSE_BLOCK_H_
