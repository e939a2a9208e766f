// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "ops/integer/contract.h"
#include "ops/integer/conv_layer.h"

namespace etx::portable {
namespace {

/// quantized_linear of the window of each point of the output; padding is the zero point.
Error quantized_conv_out(Context& context, const Tensor& input, const Tensor& weight,
                         const Tensor& weight_sums, std::optional<Tensor> bias, const Tensor& scale,
                         IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                         IntList spacing, int64_t groups, int64_t input_zero_point,
                         int64_t output_zero_point, int64_t output_min, int64_t output_max,
                         Tensor& out) {
  Layer layer;
  Window window;
  Product& p = layer.product;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, p.bounds));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  const WindowLists lists = {kernel_size, stride, padding, dilation, spacing};
  ETX_TRY(read_conv(context, {input, weight, weight_sums, lists, groups}, out, window, layer));
  ColumnOperands operands;
  ETX_TRY(read_columns(context, weight_sums, bias, scale, p.columns, layer.groups, layer.rows.depth,
                       input_zero_point + integer().offset, operands));
  if (context.is_loading()) return Error::Ok;
  window.fill = static_cast<int8_t>(input_zero_point);
  p.start = operands.start;
  p.scale = operands.scale;
  p.out = out.mutable_data_ptr<int8_t>();
  p.out_stride = weight_sums.numel();
  layer.operand_step = operands.padded;
  layer.multiply = integer().product;
  return run_layer(context, layer);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_conv.out", quantized_conv_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_conv_kernels, kRows);

}  // namespace etx::portable
