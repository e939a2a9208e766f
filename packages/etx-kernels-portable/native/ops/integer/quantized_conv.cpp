// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/integer/layer.h"
#include "ops/integer/window_shape.h"

namespace etx::portable {
namespace {

/// A window of one point that moves by one: rows are points of the input as they lie.
bool is_pointwise(const Window& w) {
  bool simple = w.pixel == w.channels;
  for (int i = 0; i < 2; ++i) {
    simple &= w.kernel[i] == 1 && w.stride[i] == 1 && w.before[i] == 0 && w.spacing[i] == 1 &&
              w.out[i] == w.in[i];
  }
  return simple;
}

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
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_TRY(read_window(context, input, {kernel_size, stride, padding, dilation, spacing}, window));
  ETX_CHECK(context,
            groups >= 1 && groups <= INT32_MAX && window.pixel % groups == 0 &&
                weight_sums.numel() % groups == 0,
            InvalidArgument, "groups must be positive and divide input and output channels");
  window.channels = window.pixel / groups;
  window.fill = static_cast<int8_t>(input_zero_point);
  p.columns = weight_sums.numel() / groups;
  const Checked depth = Checked(window.kernel[0]) * window.kernel[1] * window.channels;
  ETX_CHECK(context, depth.is_within(0, INT32_MAX), InvalidArgument,
            "the window must have less than 2^31 numbers");
  layer.rows.depth = depth.value_or(0);
  ETX_TRY(check_packed(context, weight, ScalarType::Char, groups, p.columns, layer.rows.depth,
                       kBlockDepth));
  ColumnOperands operands;
  ETX_TRY(read_columns(context, weight_sums, bias, scale, p.columns, groups, layer.rows.depth,
                       input_zero_point + integer().offset, operands));
  ETX_TRY(resize_window_out(context, input, window, weight_sums.numel(), out));
  if (context.is_loading()) return Error::Ok;
  layer.num_rows = out.numel() == 0 ? 0 : out.numel() / out.size(3);
  layer.rows.x = input.const_data_ptr<int8_t>();
  layer.rows.end = layer.rows.x + input.numel();
  layer.rows.stride = window.pixel;
  layer.rows.window = is_pointwise(window) ? nullptr : &window;
  layer.groups = groups;
  p.steps = weight.size(1);
  p.end = divide_up(p.columns, kBlockColumns);
  p.weight = weight.const_data_ptr<int8_t>();
  p.start = operands.start;
  p.scale = operands.scale;
  p.out = out.mutable_data_ptr<int8_t>();
  p.out_stride = weight_sums.numel();
  layer.weight_step = p.end * p.steps * kBlockBytes;
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
