// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

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
  const int64_t rows = self.size(row) + min<int64_t>(offset, 0);
  const int64_t columns = self.size(column) - max<int64_t>(offset, 0);
  const int64_t length = min(rows, columns);
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != row && d != column) shape.push(self.size(d));
  }
  shape.push(max<int64_t>(length, 0));
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

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::diagonal_copy.out", diagonal_copy_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(diagonal_kernels, kRows);

}  // namespace etx::portable
