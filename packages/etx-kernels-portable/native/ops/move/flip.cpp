// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error flip_out(Context& context, const Tensor& self, IntList dims, Tensor& out) {
  bool flipped[kMaxRank] = {};
  for (const int64_t item : dims) {
    ssize_t dim = 0;
    ETX_TRY(wrap_dim(context, item, self.dim(), dim));
    ETX_CHECK(context, !flipped[dim], InvalidArgument, "dims must not name a dimension twice");
    flipped[dim] = true;
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  StridedCopy copy;
  Checked start = 0;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    copy.add(self.size(d), out.stride(d), flipped[d] ? -self.stride(d) : self.stride(d));
    if (flipped[d]) start += Checked(self.size(d) - 1) * self.stride(d);
  }
  return copy.run(context, out, Place(self, start), self.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::flip.out", flip_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(flip_kernels, kRows);

}  // namespace etx::portable
