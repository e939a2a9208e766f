// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "ops/quantized/quantized_rows.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 256;

/// out = quantize(dequantize(a) + dequantize(b)).
Error add_out(Context& context, const Tensor& a, double a_scale, int64_t a_zero_point,
              int64_t /*a_quant_min*/, int64_t /*a_quant_max*/, const Tensor& b, double b_scale,
              int64_t b_zero_point, int64_t /*b_quant_min*/, int64_t /*b_quant_max*/,
              double out_scale, int64_t out_zero_point, int64_t out_quant_min,
              int64_t out_quant_max, Tensor& out) {
  Range range;
  ETX_TRY(make_range(context, out_quant_min, out_quant_max, out.scalar_type(), range));
  ETX_CHECK(context, is_quantized_type(a.scalar_type()) && is_quantized_type(b.scalar_type()),
            NotSupported, "quantized tensors must be uint8, int8, int16, uint16 or int32");
  ETX_TRY(check_zero_point(context, a_zero_point));
  ETX_TRY(check_zero_point(context, b_zero_point));
  ETX_TRY(check_zero_point(context, out_zero_point));
  ETX_CHECK(context, a.impl() != out.impl() && b.impl() != out.impl(), InvalidArgument,
            "out must not be an input");
  ETX_TRY(resize_out(context, out, Shape(a)));
  ETX_CHECK(context, same_layout(a, b) && same_layout(a, out), InvalidArgument,
            "a, b and out must have the same shape and dim order");
  const float inverse = static_cast<float>(1.0 / out_scale);
  context.parallel_for(0, a.numel(), 16384, [&](int64_t begin, int64_t end) {
    float left[kBlock];
    float right[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = min(end - i, kBlock);
      dequantize_row(element_ptr(a, i), a.scalar_type(), a_zero_point, static_cast<float>(a_scale),
                     left, n);
      dequantize_row(element_ptr(b, i), b.scalar_type(), b_zero_point, static_cast<float>(b_scale),
                     right, n);
      for (int64_t k = 0; k < n; ++k) left[k] += right[k];
      quantize_row(left, inverse, out_zero_point, range, mutable_element_ptr(out, i), n);
    }
  });
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("quantized_decomposed::add.out", add_out, kQuantizedBits),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_add_kernels, kRows);

}  // namespace etx::portable
