// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/shape.h"
#include "ops/index/sort_rows.h"

namespace etx::portable {
namespace {

Error sort_values(Context& context, const Tensor& self, int64_t dim, bool descending,
                  Tensor& values, Tensor& indices) {
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  return sort_rows(context, self, axis, size_of(self, axis), descending, true, values, indices);
}

Error sort_values_stable(Context& context, const Tensor& self, std::optional<bool> /*stable*/,
                         int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  return sort_values(context, self, dim, descending, values, indices);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::sort.values", sort_values, RealBool::bits),
    ETX_KERNEL("aten::sort.values_stable", sort_values_stable, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(sort_kernels, kRows);

}  // namespace etx::portable
