// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/integer/layer.h"

namespace etx::portable {
namespace {

/// out = clamp(round((sum of (input - zero point) weight + bias) * scale) + zero point).
Error quantized_linear_out(Context& context, const Tensor& input, const Tensor& weight,
                           const Tensor& weight_sums, std::optional<Tensor> bias,
                           const Tensor& scale, int64_t input_zero_point, int64_t output_zero_point,
                           int64_t output_min, int64_t output_max, Tensor& out) {
  Layer layer;
  Product& p = layer.product;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, p.bounds));
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_CHECK(context, input.dim() > 0 && input.impl() != out.impl(), InvalidArgument,
            "input must have at least one dimension, and out not be an input");
  const int64_t depth = input.size(-1);
  p.columns = weight_sums.numel();
  ETX_TRY(check_packed(context, weight, ScalarType::Char, 1, p.columns, depth, kBlockDepth));
  ColumnOperands operands;
  ETX_TRY(read_columns(context, weight_sums, bias, scale, p.columns, 1, depth,
                       input_zero_point + integer().offset, operands));
  Shape shape(input);
  shape[shape.rank() - 1] = p.columns;
  ETX_TRY(set_sizes(context, {&input, 1}, out, shape));
  if (context.is_loading()) return Error::Ok;
  layer.num_rows = p.columns == 0 ? 0 : out.numel() / p.columns;
  layer.rows.x = input.const_data_ptr<int8_t>();
  layer.rows.end = layer.rows.x + input.numel();
  layer.rows.depth = layer.rows.stride = depth;
  p.weight = weight.const_data_ptr<int8_t>();
  p.steps = weight.size(1);
  p.end = weight.size(0);
  p.start = operands.start;
  p.scale = operands.scale;
  p.out = out.mutable_data_ptr<int8_t>();
  p.out_stride = p.columns;
  layer.multiply = integer().product;
  return run_layer(context, layer);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_linear.out", quantized_linear_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_linear_kernels, kRows);

}  // namespace etx::portable
