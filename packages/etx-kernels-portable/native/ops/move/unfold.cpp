// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

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
    ETX_KERNEL("aten::unfold_copy.out", unfold_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(unfold_kernels, kRows);

}  // namespace etx::portable
