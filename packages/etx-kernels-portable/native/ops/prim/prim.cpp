// SPDX-License-Identifier: BSD-3-Clause
/// Operators on scalar slots, for symbolic sizes and control flow. No tensor arithmetic.

#include <etx/prim.h>

#include "core/dispatch.h"
#include "core/element.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

Error local_scalar_dense(Context& context, const Tensor& self, EValue& out) {
  ETX_CHECK(context, self.numel() == 1, InvalidArgument, "self must have exactly one element");
  return dispatch(context, RealBool{}, self.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = load_element(self.const_data_ptr<T>());
    if constexpr (std::is_same_v<T, bool>) {
      out.set(value);
    } else if constexpr (std::is_integral_v<T>) {
      out.set(static_cast<int64_t>(value));
    } else {
      out.set(static_cast<double>(static_cast<Compute<T>>(value)));
    }
    return Error::Ok;
  });
}

constexpr etx_kernel kRows[] = {
    ETX_PRIM_KERNELS,
    ETX_KERNEL("aten::_local_scalar_dense", local_scalar_dense, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(prim_kernels, kRows);

}  // namespace etx::portable
