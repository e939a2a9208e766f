// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// out = elements start to start + length of dimension `dim` of self.
Error take(Context& context, const Tensor& self, ssize_t dim, int64_t start, int64_t length,
           const Tensor& out) {
  ETX_CHECK(context, (out.impl()->flags & ETX_TENSOR_CONSTANT) == 0, InvalidArgument,
            "out must not hold constants");
  ETX_TRY(check_output(context, self, out));
  Shape shape(self);
  shape[static_cast<size_t>(dim)] = length;
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  copy.add_dims(out, out, self);
  return copy.run(context, out, Place(self, Checked(start) * self.stride(dim)),
                  self.element_size());
}

Error split_copy_out(Context& context, const Tensor& self, int64_t split_size, int64_t dim,
                     TensorList out) {
  ssize_t axis = 0;
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  const int64_t size = self.size(axis);
  ETX_CHECK(context, split_size > 0 || (split_size == 0 && size == 0), InvalidArgument,
            "split_size must be positive");
  const int64_t count = size == 0 ? 1 : (size - 1) / split_size + 1;
  ETX_CHECK(context, count == static_cast<int64_t>(out.size()), InvalidArgument,
            "out must have one tensor for each part");
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t start = static_cast<int64_t>(i) * split_size;
    const int64_t rest = size - start;
    ETX_TRY(take(context, self, axis, start, min(rest, split_size), out[i]));
  }
  return Error::Ok;
}

Error split_with_sizes_copy_out(Context& context, const Tensor& self, IntList split_sizes,
                                int64_t dim, TensorList out) {
  ssize_t axis = 0;
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_CHECK(context, split_sizes.size() == out.size(), InvalidArgument,
            "out must have one tensor for each part");
  int64_t start = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    ETX_CHECK(context, split_sizes[i] >= 0 && split_sizes[i] <= self.size(axis) - start,
              InvalidArgument, "split_sizes must add up to self's size in dimension dim");
    ETX_TRY(take(context, self, axis, start, split_sizes[i], out[i]));
    start += split_sizes[i];
  }
  ETX_CHECK(context, start == self.size(axis), InvalidArgument,
            "split_sizes must add up to self's size in dimension dim");
  return Error::Ok;
}

Error unbind_copy_int_out(Context& context, const Tensor& self, int64_t dim, TensorList out) {
  ssize_t axis = 0;
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_CHECK(context, self.size(axis) == static_cast<ssize_t>(out.size()), InvalidArgument,
            "out must have one tensor for each index of dimension dim");
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != axis) shape.push(self.size(d));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const Tensor part = out[i];
    ETX_CHECK(context, (part.impl()->flags & ETX_TENSOR_CONSTANT) == 0, InvalidArgument,
              "out must not hold constants");
    ETX_TRY(check_output(context, self, part));
    ETX_TRY(resize_out(context, part, shape));
    StridedCopy copy;
    for (ssize_t d = 0; d < part.dim(); ++d) {
      copy.add(part.size(d), part.stride(d), self.stride(d < axis ? d : d + 1));
    }
    const Checked first = Checked(static_cast<int64_t>(i)) * self.stride(axis);
    ETX_TRY(copy.run(context, part, Place(self, first), self.element_size()));
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::split_copy.Tensor_out", split_copy_out, kAnyDtype),
    ETX_KERNEL("aten::split_with_sizes_copy.out", split_with_sizes_copy_out, kAnyDtype),
    ETX_KERNEL("aten::unbind_copy.int_out", unbind_copy_int_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(split_kernels, kRows);

}  // namespace etx::portable
