// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/shape.h"
#include "ops/index/sort_rows.h"

namespace etx::portable {
namespace {

Error topk_values(Context& context, const Tensor& self, int64_t k, int64_t dim, bool largest,
                  bool sorted, Tensor& values, Tensor& indices) {
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_CHECK(context, k >= 0 && k <= size_of(self, axis), InvalidArgument,
            "k must be at most self's size in dimension dim");
  return sort_rows(context, self, axis, k, largest, sorted, values, indices);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::topk.values", topk_values, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(topk_kernels, kRows);

}  // namespace etx::portable
