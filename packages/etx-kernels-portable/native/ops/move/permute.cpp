// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// out dimension i is self dimension dims[i].
Error permute(Context& context, const Tensor& self, Span<const ssize_t> dims, Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  Shape shape;
  for (const ssize_t d : dims) shape.push(self.size(d));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (size_t i = 0; i < dims.size(); ++i) {
    copy.add(self.size(dims[i]), out.stride(static_cast<ssize_t>(i)), self.stride(dims[i]));
  }
  return copy.run(context, out, self, self.element_size());
}

Error permute_copy_out(Context& context, const Tensor& self, IntList dims, Tensor& out) {
  ETX_CHECK(context, dims.size() == static_cast<size_t>(self.dim()), InvalidArgument,
            "dims must name each dimension of self once");
  ssize_t order[kMaxRank];
  bool seen[kMaxRank] = {};
  for (size_t i = 0; i < dims.size(); ++i) {
    ETX_TRY(wrap_dim(context, dims[i], self.dim(), order[i]));
    ETX_CHECK(context, !seen[order[i]], InvalidArgument,
              "dims must name each dimension of self once");
    seen[order[i]] = true;
  }
  return permute(context, self, {order, dims.size()}, out);
}

Error transpose(Context& context, const Tensor& self, ssize_t dim0, ssize_t dim1, Tensor& out) {
  ssize_t order[kMaxRank];
  for (ssize_t d = 0; d < self.dim(); ++d) order[d] = d == dim0 ? dim1 : d == dim1 ? dim0 : d;
  return permute(context, self, {order, static_cast<size_t>(self.dim())}, out);
}

Error transpose_copy_int_out(Context& context, const Tensor& self, int64_t dim0, int64_t dim1,
                             Tensor& out) {
  ssize_t first = 0;
  ssize_t second = 0;
  ETX_TRY(wrap_dim(context, dim0, self.dim(), first));
  ETX_TRY(wrap_dim(context, dim1, self.dim(), second));
  return transpose(context, self, first, second, out);
}

Error t_copy_out(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context, self.dim() <= 2, InvalidArgument, "self must have at most 2 dimensions");
  return transpose(context, self, 0, self.dim() == 2 ? 1 : 0, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::permute_copy.out", permute_copy_out, kAnyDtype),
    ETX_KERNEL("aten::transpose_copy.int_out", transpose_copy_int_out, kAnyDtype),
    ETX_KERNEL("aten::t_copy.out", t_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(permute_kernels, kRows);

}  // namespace etx::portable
