// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/operands.h"
#include "cortex_m/round_even.h"

namespace etx::cortex_m {
namespace {

/// A quotient of float32, as ExecuTorch's: 0 where the divisor is 0.
Error div_out(Context& context, const Tensor& self, int64_t self_zero_point, const Tensor& other,
              int64_t other_zero_point, int64_t output_zero_point, double output_scale,
              Tensor& out) {
  Repeated repeated;
  ETX_CHECK(context,
            is_int8(self) && is_int8(other) && is_int8(out) && repeated.read(self, other, out),
            InvalidArgument, "operands must be int8, and repeated give the sizes of out");
  ETX_CHECK(
      context,
      is_offset(self_zero_point) && is_offset(other_zero_point) && is_offset(output_zero_point),
      InvalidArgument, "zero points must be those of int8");
  const auto a = static_cast<int32_t>(self_zero_point), b = static_cast<int32_t>(other_zero_point);
  const auto zero = static_cast<int32_t>(output_zero_point);
  const float scale = detail::to_float(output_scale);
  const auto divide = [&](const int8_t* x, const int8_t* y, int8_t* to, ssize_t count) {
    for (ssize_t i = 0; i < count; ++i) {
      const int32_t divisor = y[i] - b;
      const float quotient =
          divisor == 0 ? 0.0f : static_cast<float>(x[i] - a) / static_cast<float>(divisor);
      const int32_t value = round_even(quotient * scale) + zero;
      to[i] = static_cast<int8_t>(value < -128 ? -128 : value > 127 ? 127 : value);
    }
  };
  repeated.each(self.const_data_ptr<int8_t>(), other.const_data_ptr<int8_t>(),
                out.mutable_data_ptr<int8_t>(), out.numel(), divide);
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::quantized_div.out", div_out)};

}  // namespace

ETX_KERNEL_TABLE(div_kernels, kRows);

}  // namespace etx::cortex_m
