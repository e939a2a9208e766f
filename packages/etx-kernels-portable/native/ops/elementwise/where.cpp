// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "ops/elementwise/blend.h"

namespace etx::portable {
namespace {

Error where_out(Context& context, const Tensor& condition, const Tensor& self, const Tensor& other,
                Tensor& out) {
  const ScalarType to = out.scalar_type();
  return blend(context, condition, Operand(self, to), Operand(other, to), out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::where.self_out", where_out, kCastable | kInPlace),
};

}  // namespace

ETX_KERNEL_TABLE(where_kernels, kRows);

}  // namespace etx::portable
