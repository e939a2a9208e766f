// SPDX-License-Identifier: BSD-3-Clause
#include "prims.h"

#include <c10/core/InferenceMode.h>

#include <etx/prim.h>

#include "call.h"
#include "failure.h"
#include "forked.h"

namespace etx::aten {
namespace {

/// Runs `function`, which may throw.
template <typename Function>
Error guarded(Context& context, const Function& function) {
  try {
    leave_pool_of_parent();
    const c10::InferenceMode guard;
    function();
    return Error::Ok;
  } catch (...) {
    return static_cast<Error>(fail_with_exception(context.raw()));
  }
}

Error local_scalar_dense(Context& context, const Tensor& self, EValue& out) {
  return guarded(context, [&] {
    const at::Scalar number = wrap(*self.impl()).item();
    if (number.isBoolean()) {
      out.set(number.toBool());
    } else if (number.isIntegral(false)) {
      out.set(number.toLong());
    } else {
      out.set(number.toDouble());
    }
  });
}

/// The elements in the layout and dtype of `out`.
Error convert(Context& context, const Tensor& self, Tensor& out) {
  return guarded(context, [&] {
    const at::Tensor source = wrap(*self.impl());
    const auto type = static_cast<c10::ScalarType>(out.scalar_type());
    store(source.scalar_type() == type ? source : source.to(type), *out.impl());
  });
}

Error to_dim_order_copy_out(Context& context, const Tensor& self, bool,
                            const std::optional<IntList>&, Tensor& out) {
  return convert(context, self, out);
}

Error empty_dim_order_out(Context& context, IntList size, const std::optional<IntList>&,
                          Tensor& out) {
  ETX_CHECK(context, out.resize(size) == Error::Ok, InvalidArgument,
            "out must have the sizes, or room for them");
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_PRIM_KERNELS,
    ETX_KERNEL("aten::_local_scalar_dense", local_scalar_dense),
    ETX_KERNEL("dim_order_ops::_to_dim_order_copy.out", to_dim_order_copy_out),
    ETX_KERNEL("dim_order_ops::_clone_dim_order.out", to_dim_order_copy_out),
    ETX_KERNEL("dim_order_ops::_empty_dim_order.out", empty_dim_order_out),
};

}  // namespace

ETX_KERNEL_TABLE(prim_kernels, kRows);

}  // namespace etx::aten
