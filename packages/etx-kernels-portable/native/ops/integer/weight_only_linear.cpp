// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/checked.h"
#include "core/scratch.h"
#include "ops/integer/float_linear.h"

namespace etx::portable {
namespace {

/// Sets `x` and `stride` to rows that end with zeros up to a whole block of depth.
Error pad_rows(Context& context, const Tensor& input, const FloatLinear& linear, const float*& x,
               int64_t& stride) {
  x = input.const_data_ptr<float>();
  stride = linear.depth;
  const int64_t whole = linear.steps * kBlockDepth;
  if (whole == linear.depth) return Error::Ok;
  ETX_ASSIGN(float* const padded,
             scratch<float>(context, (Checked(linear.rows) * whole).value_or(-1),
                            "no temporary memory for rows of whole blocks"));
  for (int64_t i = 0; i < linear.rows; ++i) {
    float* const to = padded + i * whole;
    memcpy(to, x + i * stride, static_cast<size_t>(stride) * sizeof(float));
    for (int64_t k = stride; k < whole; ++k) to[k] = 0;
  }
  x = padded;
  stride = whole;
  return Error::Ok;
}

Error run(Context& context, const FloatLinearArguments& a, const Tensor& out) {
  FloatLinear linear;
  ETX_TRY(read_float_linear(context, a, out, linear));
  if (context.is_loading() || linear.rows == 0 || linear.columns == 0) return Error::Ok;
  FloatProduct p;
  ETX_TRY(pad_rows(context, a.input, linear, p.x, p.x_stride));
  p.num_rows = linear.rows;
  fill_product(linear, a.packed.weight, out.mutable_data_ptr<float>(), p);
  multiply_floats(context, p, linear.blocks,
                  a.packed.is_int4 ? integer().weight_only_int4 : integer().weight_only);
  return Error::Ok;
}

/// out = clamp(input (weight * weight_scales)^T + bias), in float.
Error weight_only_linear_out(Context& context, const Tensor& input, const Tensor& weight,
                             const Tensor& weight_scales, std::optional<Tensor> bias,
                             double output_min, double output_max, Tensor& out) {
  return run(context,
             {input, {weight, weight_scales, nullptr, bias, false, {}}, output_min, output_max},
             out);
}

/// The same with an int4 weight, whose scales are by group of the depth.
Error weight_only_linear_int4_out(Context& context, const Tensor& input, const Tensor& weight,
                                  const Tensor& weight_scales, std::optional<Tensor> bias,
                                  int64_t group_size, int64_t columns, double output_min,
                                  double output_max, Tensor& out) {
  const Groups groups{group_size, columns};
  return run(context,
             {input, {weight, weight_scales, nullptr, bias, true, groups}, output_min, output_max},
             out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::weight_only_linear.out", weight_only_linear_out,
               dtype_bit(ScalarType::Float) | kChecksAtLoad),
    ETX_KERNEL("etx::weight_only_linear_int4.out", weight_only_linear_int4_out,
               dtype_bit(ScalarType::Float) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(weight_only_linear_kernels, kRows);

}  // namespace etx::portable
