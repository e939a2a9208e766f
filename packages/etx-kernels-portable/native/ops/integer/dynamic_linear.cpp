// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/checked.h"
#include "ops/integer/float_linear.h"
#include "ops/integer/layer.h"

namespace etx::portable {
namespace {

Error run(Context& context, const FloatLinearArguments& a, const Tensor& out) {
  FloatLinear linear;
  ETX_TRY(read_float_linear(context, a, out, linear));
  ETX_CHECK(context, (Checked(linear.depth) * (255 * 128)).is_within(0, INT32_MAX), InvalidArgument,
            "sums must fit int32: the depth times 255 * 128 must be less than 2^31");
  if (context.is_loading()) return Error::Ok;
  Layer layer;
  layer.num_rows = linear.rows;
  layer.x = a.input.const_data_ptr<float>();
  layer.rows.depth = layer.rows.stride = linear.depth;
  const bool is_int4 = a.packed.is_int4;
  layer.multiply = is_int4 ? integer().float_product_int4 : integer().float_product;
  if (is_int4) layer.sum_groups = integer().sum_groups;
  fill_product(linear, a.packed.weight, out.mutable_data_ptr<float>(), layer.product);
  layer.blocks = linear.blocks;
  return run_layer(context, layer);
}

/// out = clamp(quantized(input) weight * (scale of the row * weight_scales) + bias).
Error dynamic_linear_out(Context& context, const Tensor& input, const Tensor& weight,
                         const Tensor& weight_sums, const Tensor& weight_scales,
                         std::optional<Tensor> bias, double output_min, double output_max,
                         Tensor& out) {
  return run(
      context,
      {input, {weight, weight_scales, &weight_sums, bias, false, {}}, output_min, output_max}, out);
}

/// The same with an int4 weight of `columns` rows, whose sums and scales are by group of the depth.
Error dynamic_linear_int4_out(Context& context, const Tensor& input, const Tensor& weight,
                              const Tensor& weight_sums, const Tensor& weight_scales,
                              std::optional<Tensor> bias, int64_t group_size, int64_t columns,
                              double output_min, double output_max, Tensor& out) {
  return run(context,
             {input,
              {weight, weight_scales, &weight_sums, bias, true, Groups{group_size, columns}},
              output_min,
              output_max},
             out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::dynamic_linear.out", dynamic_linear_out,
               dtype_bit(ScalarType::Float) | kChecksAtLoad),
    ETX_KERNEL("etx::dynamic_linear_int4.out", dynamic_linear_int4_out,
               dtype_bit(ScalarType::Float) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(dynamic_linear_kernels, kRows);

}  // namespace etx::portable
