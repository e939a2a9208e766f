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

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::as_strided_copy.out", as_strided_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(as_strided_kernels, kRows);

}  // namespace etx::portable
