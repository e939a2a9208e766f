// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "core/work.h"

namespace etx::portable {
namespace {

/// The elements start, start + step, … (`length` of them) of one dimension.
struct Range {
  ssize_t dim = 0;
  int64_t start = 0;
  int64_t length = 0;
  int64_t step = 1;
};

Error make_range(Context& context, const Tensor& self, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step, Range& range) {
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), range.dim));
  ETX_CHECK(context, step > 0, InvalidArgument, "step must be positive");
  const int64_t size = self.size(range.dim);
  const auto clamp = [size](int64_t v) {
    if (v < 0) v += size;
    return min(max<int64_t>(v, 0), size);
  };
  range.start = clamp(start.value_or(0));
  const int64_t stop = clamp(end.value_or(size));
  const int64_t extent = max<int64_t>(stop - range.start, 0);
  range.step = min(step, max<int64_t>(extent, 1));
  range.length = divide_up(extent, range.step);
  return Error::Ok;
}

Error copy_range(Context& context, const Tensor& self, const Range& range, Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  Shape shape(self);
  shape[static_cast<size_t>(range.dim)] = range.length;
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  copy.add_dims(out, out, self, range.dim);
  copy.add(range.length, out.stride(range.dim), Checked(self.stride(range.dim)) * range.step);
  return copy.run(context, out, Place(self, Checked(range.start) * self.stride(range.dim)),
                  self.element_size());
}

Error slice_copy_out(Context& context, const Tensor& self, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
                     Tensor& out) {
  Range range;
  ETX_TRY(make_range(context, self, dim, start, end, step, range));
  return copy_range(context, self, range, out);
}

Error narrow_copy_out(Context& context, const Tensor& self, int64_t dim, int64_t start,
                      int64_t length, Tensor& out) {
  Range range{0, start, length, 1};
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), range.dim));
  const int64_t size = self.size(range.dim);
  ETX_CHECK(context, start >= -size && start <= size, InvalidArgument,
            "start must lie within dimension dim of self");
  if (start < 0) range.start += size;
  ETX_CHECK(context, length >= 0 && length <= size - range.start, InvalidArgument,
            "start + length must lie within dimension dim of self");
  return copy_range(context, self, range, out);
}

Error wrap_index(Context& context, const Tensor& self, int64_t dim, int64_t index, Range& range) {
  ETX_CHECK(context, self.dim() > 0, InvalidArgument, "self must have at least one dimension");
  ETX_TRY(wrap_dim(context, dim, self.dim(), range.dim));
  const int64_t size = self.size(range.dim);
  ETX_CHECK(context, index >= -size && index < size, InvalidArgument,
            "index must lie within dimension dim of self");
  range.start = index < 0 ? index + size : index;
  range.length = 1;
  range.step = 1;
  return Error::Ok;
}

Error select_copy_out(Context& context, const Tensor& self, int64_t dim, int64_t index,
                      Tensor& out) {
  Range range;
  ETX_TRY(wrap_index(context, self, dim, index, range));
  ETX_TRY(check_output(context, self, out));
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != range.dim) shape.push(self.size(d));
  }
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    copy.add(out.size(d), out.stride(d), self.stride(d < range.dim ? d : d + 1));
  }
  return copy.run(context, out, Place(self, Checked(range.start) * self.stride(range.dim)),
                  self.element_size());
}

/// out = self, where the program has not planned both into the same memory.
Error copy_base(Context& context, const Tensor& self, const Tensor& src, Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_output(context, src, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.const_data_ptr() != self.const_data_ptr()) ETX_TRY(copy_elements(context, out, self));
  return Error::Ok;
}

Error slice_scatter_out(Context& context, const Tensor& self, const Tensor& src, int64_t dim,
                        std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
                        Tensor& out) {
  Range range;
  ETX_TRY(make_range(context, self, dim, start, end, step, range));
  bool fits = src.dim() == self.dim();
  for (ssize_t d = 0; fits && d < self.dim(); ++d) {
    fits = src.size(d) == (d == range.dim ? range.length : self.size(d));
  }
  ETX_CHECK(context, fits, InvalidArgument, "src must have the shape of the slice of self");
  ETX_TRY(copy_base(context, self, src, out));
  StridedCopy copy;
  copy.add_dims(src, out, src, range.dim);
  copy.add(range.length, Checked(out.stride(range.dim)) * range.step, src.stride(range.dim));
  return copy.run(context, Place(out, Checked(range.start) * out.stride(range.dim)), src,
                  src.element_size());
}

Error select_scatter_out(Context& context, const Tensor& self, const Tensor& src, int64_t dim,
                         int64_t index, Tensor& out) {
  Range range;
  ETX_TRY(wrap_index(context, self, dim, index, range));
  bool fits = src.dim() == self.dim() - 1;
  for (ssize_t d = 0; fits && d < src.dim(); ++d) {
    fits = src.size(d) == self.size(d < range.dim ? d : d + 1);
  }
  ETX_CHECK(context, fits, InvalidArgument, "src must have the shape of self without dim");
  ETX_TRY(copy_base(context, self, src, out));
  StridedCopy copy;
  for (ssize_t d = 0; d < src.dim(); ++d) {
    copy.add(src.size(d), out.stride(d < range.dim ? d : d + 1), src.stride(d));
  }
  return copy.run(context, Place(out, Checked(range.start) * out.stride(range.dim)), src,
                  src.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::slice_copy.Tensor_out", slice_copy_out, kAnyDtype),
    ETX_KERNEL("aten::narrow_copy.out", narrow_copy_out, kAnyDtype),
    ETX_KERNEL("aten::select_copy.int_out", select_copy_out, kAnyDtype),
    ETX_KERNEL("aten::slice_scatter.out", slice_scatter_out, kAnyDtype),
    ETX_KERNEL("aten::select_scatter.out", select_scatter_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(slice_kernels, kRows);

}  // namespace etx::portable
