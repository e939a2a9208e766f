// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/dispatch.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "ops/create/generator.h"

namespace etx::portable {
namespace {

constexpr int64_t kGrain = 4096;

/// Each element is zero with probability p, else x / (1 - p); `mask` says which are kept.
Error drop(Context& context, const Tensor& input, double p, const Tensor& out, const Tensor& mask) {
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  const etx_random draw = context.next_draw();
  ETX_TRY(copy_elements(context, out, input));
  return dispatch(context, Floating{}, input.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const y = out.mutable_data_ptr<T>();
    uint8_t* const kept = mask.mutable_data_ptr<uint8_t>();
    context.parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      Numbers numbers(draw);
      for (int64_t i = begin; i < end; ++i) {
        const float drawn = numbers.uniform(static_cast<uint64_t>(i), 24);
        kept[i] = static_cast<double>(drawn) >= p;
        const auto value = static_cast<Compute<T>>(y[i]) * static_cast<Compute<T>>(scale);
        y[i] = kept[i] != 0 ? static_cast<T>(value) : T(0.0f);
      }
    });
    return Error::Ok;
  });
}

/// In training mode random elements are dropped; else the input and a mask of ones.
Error native_dropout_out(Context& context, const Tensor& input, double p, std::optional<bool> train,
                         Tensor& out0, Tensor& out1) {
  const bool drops = train.value_or(true) && p != 0;
  ETX_CHECK(context, p >= 0 && p <= 1, InvalidArgument, "p must be a probability");
  ETX_CHECK(context, !drops || is_floating(input.scalar_type()), NotSupported,
            "input must be of a floating dtype");
  ETX_CHECK(context,
            out0.scalar_type() == input.scalar_type() && out1.scalar_type() == ScalarType::Bool,
            InvalidArgument, "out0 must have the dtype of input and out1 must have dtype bool");
  ETX_TRY(resize_out(context, out0, Shape(input)));
  ETX_TRY(resize_out(context, out1, Shape(input)));
  if (drops) {
    ETX_CHECK(context, same_layout(out0, out1), InvalidArgument, "results must have one dim order");
    return drop(context, input, p, out0, out1);
  }
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
