// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error expand_copy_out(Context& context, const Tensor& self, IntList size, bool /*implicit*/,
                      Tensor& out) {
  const ssize_t added = static_cast<ssize_t>(size.size()) - self.dim();
  ETX_CHECK(context, added >= 0, InvalidArgument, "size must have at least the rank of self");
  Shape shape;
  for (size_t i = 0; i < size.size(); ++i) {
    const ssize_t d = static_cast<ssize_t>(i) - added;
    const bool kept = d >= 0 && (size[i] == -1 || size[i] == self.size(d));
    ETX_CHECK(context, kept || (size[i] >= 0 && (d < 0 || self.size(d) == 1)), InvalidArgument,
              "size must equal self's size, or be -1, wherever self's size is not 1");
    shape.push(kept ? self.size(d) : size[i]);
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    const bool repeated = d < added || self.size(d - added) == 1;
    copy.add(out.size(d), out.stride(d), repeated ? 0 : self.stride(d - added));
  }
  return copy.run(context, out, self, self.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::expand_copy.out", expand_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(expand_kernels, kRows);

}  // namespace etx::portable
