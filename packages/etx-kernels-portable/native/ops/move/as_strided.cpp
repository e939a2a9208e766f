// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error as_strided_copy_out(Context& context, const Tensor& self, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset, Tensor& out) {
  ETX_CHECK(context, size.size() == stride.size(), InvalidArgument,
            "size and stride must have the same length");
  const int64_t offset = storage_offset.value_or(0);
  const int64_t count = self.numel();
  ETX_CHECK(context, offset >= 0 && offset <= count, InvalidArgument,
            "storage_offset must lie within self");
  Shape shape;
  Footprint footprint(offset);
  for (size_t i = 0; i < size.size(); ++i) {
    ETX_CHECK(context, size[i] >= 0 && size[i] <= INT32_MAX && stride[i] >= 0, InvalidArgument,
              "size and stride must not be negative");
    footprint.add(size[i], stride[i]);
    shape.push(size[i]);
  }
  ETX_CHECK(context, footprint.stays_within(count), InvalidArgument,
            "size and stride must stay within self");
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (size_t i = 0; i < size.size(); ++i) {
    copy.add(size[i], out.stride(static_cast<ssize_t>(i)), stride[i]);
  }
  return copy.run(context, out, Place(self, offset), self.element_size());
}

Error diagonal_copy_out(Context& context, const Tensor& self, int64_t offset, int64_t dim1,
                        int64_t dim2, Tensor& out) {
  ssize_t row = 0;
  ssize_t column = 0;
  ETX_CHECK(context, self.dim() >= 2, InvalidArgument, "self must have at least 2 dimensions");
  ETX_TRY(wrap_dim(context, dim1, self.dim(), row));
  ETX_TRY(wrap_dim(context, dim2, self.dim(), column));
  ETX_CHECK(context, row != column, InvalidArgument, "dim1 and dim2 must differ");
  ETX_CHECK(context, offset >= -INT32_MAX && offset <= INT32_MAX, InvalidArgument,
            "offset must be from -2147483647 to 2147483647");
  const int64_t rows = self.size(row) + (offset < 0 ? offset : 0);
  const int64_t columns = self.size(column) - (offset > 0 ? offset : 0);
  const int64_t length = rows < columns ? rows : columns;
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != row && d != column) shape.push(self.size(d));
  }
  shape.push(length > 0 ? length : 0);
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  StridedCopy copy;
  ssize_t to = 0;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d == row || d == column) continue;
    copy.add(self.size(d), out.stride(to), self.stride(d));
    ++to;
  }
  copy.add(length, out.stride(to), Checked(self.stride(row)) + self.stride(column));
  const ssize_t along = offset < 0 ? row : column;
  const Checked start = Checked(offset < 0 ? -offset : offset) * self.stride(along);
  return copy.run(context, out, Place(self, start), self.element_size());
}

Error unfold_copy_out(Context& context, const Tensor& self, int64_t dimension, int64_t size,
                      int64_t step, Tensor& out) {
  ssize_t dim = 0;
  ETX_TRY(wrap_dim(context, dimension, self.dim(), dim));
  const int64_t extent = size_of(self, dim);
  ETX_CHECK(context, size >= 0 && size <= extent && step > 0, InvalidArgument,
            "size must be at most self's size in dimension, and step positive");
  const int64_t windows = (extent - size) / step + 1;
  const int64_t stride = stride_of(self, dim);
  Shape shape(self);
  if (self.dim() > 0) shape[static_cast<size_t>(dim)] = windows;
  shape.push(size);
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != dim) copy.add(self.size(d), out.stride(d), self.stride(d));
  }
  if (self.dim() > 0) copy.add(windows, out.stride(dim), Checked(stride) * step);
  copy.add(size, out.stride(-1), stride);
  return copy.run(context, out, self, self.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::as_strided_copy.out", as_strided_copy_out, kAnyDtype),
    ETX_KERNEL("aten::diagonal_copy.out", diagonal_copy_out, kAnyDtype),
    ETX_KERNEL("aten::unfold_copy.out", unfold_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(as_strided_kernels, kRows);

}  // namespace etx::portable
