// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SHAPE_H_
#define ETX_PORTABLE_SHAPE_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/checked.h"
#include "core/min_max.h"

namespace etx::portable {

/// Dtypes of kernels that move elements of 1, 2, 4, 8 or 16 bytes without looking at them: all.
constexpr uint64_t kAnyDtype = (uint64_t{1} << kNumScalarTypes) - 1;

/// Sizes on their way to `resize_out`.
class Shape {
 public:
  Shape() = default;
  explicit Shape(const Tensor& tensor) {
    for (ssize_t d = 0; d < tensor.dim(); ++d) push(tensor.size(d));
  }

  /// Ignored beyond the highest rank; `resize_out` then fails, and so it does on a size that is
  /// lost.
  void push(Checked size) {
    if (rank_ < kMaxRank) sizes_[rank_] = size.value_or(-1);
    ++rank_;
  }
  size_t rank() const { return rank_; }
  int64_t& operator[](size_t i) { return sizes_[i]; }
  int64_t operator[](size_t i) const { return sizes_[i]; }
  Span<const int64_t> sizes() const { return {sizes_, rank_}; }

 private:
  int64_t sizes_[kMaxRank] = {};
  size_t rank_ = 0;
};

/// Resizes `out`; with a reason when its memory or rank does not allow it, or when it is an input
/// as well: sizes that were checked would change with it.
inline Error resize_out(Context& context, const Tensor& out, const Shape& shape) {
  ETX_CHECK(context, shape.rank() == static_cast<size_t>(out.dim()), InvalidArgument,
            "out must have the rank of the result");
  bool same = true;
  for (size_t d = 0; d < shape.rank(); ++d) same &= shape[d] == out.sizes()[d];
  if (same) return Error::Ok;
  ETX_CHECK(context, !context.is_shared(out), InvalidArgument,
            "out must not be an input, or must have the shape of the result");
  ETX_CHECK(context, out.resize(shape.sizes()) == Error::Ok, InvalidArgument,
            "out must have the shape of the result, or be dynamic with room for it");
  return Error::Ok;
}

/// Pushes the shape that `a` and `b` broadcast to; fails with `message` where there is none.
inline Error broadcast_shape(Context& context, const Tensor& a, const Tensor& b, Shape& shape,
                             const char* message) {
  const ssize_t rank = max(a.dim(), b.dim());
  for (ssize_t d = 0; d < rank; ++d) {
    const ssize_t i = d - (rank - a.dim());
    const ssize_t j = d - (rank - b.dim());
    const int64_t left = i < 0 ? 1 : a.size(i);
    const int64_t right = j < 0 ? 1 : b.size(j);
    ETX_CHECK(context, left == right || left == 1 || right == 1, InvalidArgument, message);
    shape.push(left == 1 ? right : left);
  }
  return Error::Ok;
}

/// Wraps a negative `dim` of a tensor of `rank` dimensions; rank 0 counts as 1.
inline Error wrap_dim(Context& context, int64_t dim, ssize_t rank, ssize_t& wrapped) {
  const int64_t limit = rank == 0 ? 1 : rank;
  wrapped = 0;
  ETX_CHECK(context, dim >= -limit && dim < limit, InvalidArgument,
            "dim must be at least -rank and less than rank");
  wrapped = static_cast<ssize_t>(dim < 0 ? dim + limit : dim);
  return Error::Ok;
}

/// Checks what kernels that move elements ask of `out`. A value that is read and resized at once
/// would make sizes that were checked before untrue.
inline Error check_output(Context& context, const Tensor& in, const Tensor& out) {
  ETX_CHECK(context, in.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_CHECK(context, in.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of the input");
  return Error::Ok;
}

/// Size of dimension `d`; a tensor of rank 0 has one dimension of size 1.
inline int64_t size_of(const Tensor& tensor, ssize_t d) {
  return tensor.dim() == 0 ? 1 : tensor.size(d);
}
inline int64_t stride_of(const Tensor& tensor, ssize_t d) {
  return tensor.dim() == 0 ? 1 : tensor.stride(d);
}

/// The begin of a tensor without elements, whose sizes say nothing about its memory.
inline char* mutable_element_ptr(const Tensor& tensor, int64_t offset) {
  char* const data = static_cast<char*>(tensor.mutable_data_ptr());
  return tensor.numel() == 0 ? data : data + offset * static_cast<int64_t>(tensor.element_size());
}
inline const char* element_ptr(const Tensor& tensor, int64_t offset) {
  return mutable_element_ptr(tensor, offset);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SHAPE_H_
