// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_BROADCAST_H_
#define ETX_PORTABLE_BROADCAST_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/callback.h"

namespace etx::portable {

/// True when element k of the memory of both tensors has the same index: equal sizes and dim
/// order.
inline bool same_layout(const Tensor& a, const Tensor& b) {
  const etx_tensor& x = *a.impl();
  const etx_tensor& y = *b.impl();
  if (x.rank != y.rank || x.numel != y.numel) return false;
  for (int d = 0; d < x.rank; ++d) {
    if (x.sizes[d] != y.sizes[d] || x.dim_order[d] != y.dim_order[d]) return false;
  }
  return true;
}

/// Loops over the elements of several tensors, dimensions that are consecutive in all of them
/// merged. Level 0 is the innermost. Strides are in elements and 0 where a tensor is repeated.
template <int kTensors>
struct Nest {
  int levels = 0;
  int64_t size[kMaxRank] = {};
  int64_t stride[kMaxRank][kTensors] = {};

  /// Adds a level outside of the present ones.
  void push(int64_t extent, const int64_t (&strides)[kTensors]) {
    if (extent == 1) return;
    if (levels > 0) {
      const int inner = levels - 1;
      bool merges = true;
      for (int t = 0; t < kTensors; ++t) {
        merges &= strides[t] == stride[inner][t] * size[inner];
      }
      if (merges) {
        size[inner] *= extent;
        return;
      }
    }
    size[levels] = extent;
    for (int t = 0; t < kTensors; ++t) stride[levels][t] = strides[t];
    ++levels;
  }

  /// Elements of the innermost level.
  int64_t inner() const { return levels == 0 ? 1 : size[0]; }
  /// Iterations of the other levels together.
  int64_t outer() const {
    int64_t count = 1;
    for (int i = 1; i < levels; ++i) count *= size[i];
    return count;
  }

  /// What is called with the offset in each tensor.
  using Visit = Callback<const int64_t*>;

  /// Calls `f(offsets)` for the outer iterations [begin, end); `offsets[t]` is that of the first
  /// element of the innermost level.
  void for_each_outer(int64_t begin, int64_t end, const Visit& f) const { walk(1, begin, end, f); }

  /// Calls `f(offsets)` for the elements [begin, end) in the order of the levels.
  void for_each(int64_t begin, int64_t end, const Visit& f) const { walk(0, begin, end, f); }

 private:
  void walk(int first, int64_t begin, int64_t end, const Visit& f) const {
    int64_t index[kMaxRank] = {};
    int64_t offsets[kTensors] = {};
    int64_t rest = begin;
    for (int i = first; i < levels; ++i) {
      index[i] = rest % size[i];
      rest /= size[i];
      for (int t = 0; t < kTensors; ++t) offsets[t] += index[i] * stride[i][t];
    }
    for (int64_t k = begin; k < end; ++k) {
      f(offsets);
      for (int i = first; i < levels; ++i) {
        for (int t = 0; t < kTensors; ++t) offsets[t] += stride[i][t];
        if (++index[i] < size[i]) break;
        for (int t = 0; t < kTensors; ++t) offsets[t] -= size[i] * stride[i][t];
        index[i] = 0;
      }
    }
  }
};

/// The stride of `tensor` for dimension `d` of a result of `rank` dimensions; 0 where repeated.
inline int64_t broadcast_stride(const Tensor& tensor, ssize_t d, ssize_t rank) {
  const ssize_t own = d - (rank - tensor.dim());
  return own < 0 || tensor.size(own) == 1 ? 0 : tensor.stride(own);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_BROADCAST_H_
