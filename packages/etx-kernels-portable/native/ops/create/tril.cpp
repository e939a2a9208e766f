// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// Zero for each element above the diagonal, in any dim order.
void zero_above(int64_t diagonal, const Tensor& out) {
  Nest<1> nest;
  const ssize_t row = out.dim() - 2, column = out.dim() - 1;
  for (ssize_t d = row - 1; d >= 0; --d) nest.push(out.size(d), {out.stride(d)});
  if (out.numel() == 0) return;
  nest.for_each(0, nest.inner() * nest.outer(), [&](const int64_t* offsets) {
    for (int64_t i = 0; i < out.size(row); ++i) {
      for (int64_t j = 0; j < out.size(column); ++j) {
        if (j - i <= diagonal) continue;
        const int64_t at = offsets[0] + i * out.stride(row) + j * out.stride(column);
        std::memset(mutable_element_ptr(out, at), 0, out.element_size());
      }
    }
  });
}

/// Keeps what lies on or below the diagonal of the two last dimensions, zero elsewhere.
Error tril_out(Context& context, const Tensor& self, int64_t diagonal, Tensor& out) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, self.dim() >= 2, InvalidArgument, "self must have at least 2 dimensions");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (!self.is_contiguous() || !out.is_contiguous()) {
    ETX_TRY(copy_elements(context, out, self));
    zero_above(diagonal, out);
    return Error::Ok;
  }
  const int64_t rows = self.size(-2);
  const int64_t columns = self.size(-1);
  if (self.numel() == 0) return Error::Ok;
  const size_t row_bytes = static_cast<size_t>(columns) * self.element_size();
  for (int64_t row = 0; row < self.numel() / columns; ++row) {
    int64_t kept = diagonal < -rows ? 0 : diagonal > columns ? columns : row % rows + diagonal + 1;
    kept = min(max<int64_t>(kept, 0), columns);
    const size_t kept_bytes = static_cast<size_t>(kept) * self.element_size();
    char* to = mutable_element_ptr(out, row * columns);
    std::memmove(to, element_ptr(self, row * columns), kept_bytes);
    if (kept_bytes < row_bytes) std::memset(to + kept_bytes, 0, row_bytes - kept_bytes);
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::tril.out", tril_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(tril_kernels, kRows);

}  // namespace etx::portable
