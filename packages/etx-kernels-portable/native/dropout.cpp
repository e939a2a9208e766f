// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <etx/kernel.h>

#include "shape.h"
#include "strided_copy.h"

namespace etx::portable {
namespace {

/// Inference only: the input and a mask of ones. Training with p > 0 needs random numbers.
Error native_dropout_out(Context& context, const Tensor& input, double p, std::optional<bool> train,
                         Tensor& out0, Tensor& out1) {
  ETX_CHECK(context, !train.value_or(true) || p == 0, NotSupported,
            "dropout in training mode needs random numbers; export the model in eval mode");
  ETX_CHECK(context,
            out0.scalar_type() == input.scalar_type() && out1.scalar_type() == ScalarType::Bool,
            InvalidArgument, "out0 must have the dtype of input and out1 must have dtype bool");
  ETX_TRY(resize_out(context, out0, Shape(input)));
  ETX_TRY(resize_out(context, out1, Shape(input)));
  ETX_TRY(copy_elements(context, out0, input));
  const bool one = true;
  return fill_elements(context, out1, &one);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::native_dropout.out", native_dropout_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(dropout_kernels, kRows);

}  // namespace etx::portable
