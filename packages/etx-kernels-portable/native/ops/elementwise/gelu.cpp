// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/shape.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

constexpr int64_t kGrain = 32 * 1024;

void gelu_range(const float* x, float* y, int64_t n, bool tanh) {
  const auto loop = tanh ? isa().gelu_tanh : isa().gelu;
  loop(x, y, static_cast<size_t>(n));
}

void gelu_range(const double* x, double* y, int64_t n, bool tanh) {
  constexpr int64_t kBlock = 128;
  const auto loop = tanh ? isa().tanh_double : isa().erf_double;
  double inner[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = min(n - i, kBlock);
    for (int64_t j = 0; j < count; ++j) {
      const double v = x[i + j];
      inner[j] =
          tanh ? 0.79788456080286535588 * (v + 0.044715 * v * v * v) : v * 0.70710678118654752440;
    }
    loop(inner, inner, static_cast<size_t>(count));
    for (int64_t j = 0; j < count; ++j) y[i + j] = 0.5 * x[i + j] * (1 + inner[j]);
  }
}

Error gelu_out(Context& context, const Tensor& self, std::string_view approximate, Tensor& out) {
  ETX_CHECK(context, approximate == "none" || approximate == "tanh", InvalidArgument,
            "approximate must be \"none\" or \"tanh\"");
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, Floating::contains(self.scalar_type()), NotSupported,
            "gelu takes floating dtypes");
  ETX_TRY(resize_out(context, out, Shape(self)));
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x;
    ResultOperand result;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    T* const y = result.data<T>();
    context.parallel_for(0, self.numel(), kGrain, [&](int64_t begin, int64_t end) {
      gelu_range(x + begin, y + begin, end - begin, approximate == "tanh");
    });
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::gelu.out", gelu_out, Floating::bits | kInPlace),
};

}  // namespace

ETX_KERNEL_TABLE(gelu_kernels, kRows);

}  // namespace etx::portable
