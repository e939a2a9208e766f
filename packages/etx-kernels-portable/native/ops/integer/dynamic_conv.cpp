// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include <cmath>
#include <cstring>

#include "core/scratch.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/integer/conv_layer.h"

namespace etx::portable {
namespace {

struct FloatOutput {
  const Tensor& sums;
  const Tensor& scales;
  const std::optional<Tensor>& bias;
  double least, most;
};

bool is_float32(const Tensor& tensor, int64_t count) {
  return tensor.scalar_type() == ScalarType::Float && tensor.is_contiguous() &&
         tensor.numel() == count;
}

Error check_output(Context& context, const FloatOutput& a, const Tensor& out, Checked depth) {
  const int64_t channels = a.sums.numel();
  ETX_CHECK(context, out.scalar_type() == ScalarType::Float && out.is_contiguous(), InvalidArgument,
            "out must be contiguous float32");
  ETX_CHECK(context, a.sums.scalar_type() == ScalarType::Int && a.sums.is_contiguous(),
            InvalidArgument, "weight_sums must be contiguous int32, one for each output channel");
  ETX_CHECK(context, is_float32(a.scales, channels), InvalidArgument,
            "weight_scales must be contiguous float32, one for each output channel");
  ETX_CHECK(context, !a.bias.has_value() || is_float32(*a.bias, channels), InvalidArgument,
            "bias must be contiguous float32, one for each output channel");
  ETX_CHECK(context, static_cast<float>(a.least) <= static_cast<float>(a.most), InvalidArgument,
            "output_min and output_max must be numbers, and output_min not above output_max");
  ETX_CHECK(context, (depth * (255 * 128)).is_within(0, INT32_MAX), InvalidArgument,
            "sums must fit int32: the depth times 255 * 128 must be less than 2^31");
  if (!context.is_loading()) return Error::Ok;
  ETX_CHECK(context,
            !context.has_data(a.sums) || are_within(a.sums, (depth * 128).value_or(INT64_MAX)),
            InvalidArgument, kWrongSums);
  const float* const scales = a.scales.const_data_ptr<float>();
  for (int64_t i = 0; context.has_data(a.scales) && i < channels; ++i) {
    ETX_CHECK(context, std::isfinite(scales[i]), InvalidArgument, "weight_scales must be finite");
  }
  return Error::Ok;
}

/// Numbers of `groups` times `columns`, those of each group `padded` apart and zeros behind them.
template <typename T>
Error pad_columns(Context& context, const Tensor& from, const Layer& layer, const T*& to) {
  const int64_t columns = layer.product.columns, padded = layer.operand_step;
  ETX_ASSIGN(T* const block, scratch<T>(context, (Checked(layer.groups) * padded).value_or(-1),
                                        "no temporary memory for the columns' operands"));
  const T* const x = from.const_data_ptr<T>();
  for (int64_t g = 0; g < layer.groups; ++g) {
    T* const row = block + g * padded;
    memcpy(row, x + g * columns, static_cast<size_t>(columns) * sizeof(T));
    for (int64_t i = columns; i < padded; ++i) row[i] = 0;
  }
  to = block;
  return Error::Ok;
}

/// How the numbers of the input were quantized.
Error read_row_scale(Context& context, const Tensor& scale, const Tensor& zero_point,
                     RowScale& row) {
  ETX_CHECK(context,
            scale.scalar_type() == ScalarType::Double && scale.numel() == 1 &&
                zero_point.scalar_type() == ScalarType::Long && zero_point.numel() == 1,
            InvalidArgument, "input_scale must be one float64, and input_zero_point one int64");
  if (!context.has_data(scale) || !context.has_data(zero_point)) return Error::Ok;
  const int64_t zero = *zero_point.const_data_ptr<int64_t>();
  ETX_TRY(check_input_zero_point(context, zero));
  row = {static_cast<float>(*scale.const_data_ptr<double>()), static_cast<int32_t>(zero)};
  return Error::Ok;
}

/// out = clamp(((input - input_zero_point) weight) * (input_scale * weight_scales) + bias), of the
/// window of each point of the output; padding is the zero point.
Error dynamic_conv_out(Context& context, const Tensor& input, const Tensor& input_scale,
                       const Tensor& input_zero_point, const Tensor& weight,
                       const Tensor& weight_sums, const Tensor& weight_scales,
                       std::optional<Tensor> bias, IntList kernel_size, IntList stride,
                       IntList padding, IntList dilation, IntList spacing, int64_t groups,
                       double output_min, double output_max, Tensor& out) {
  Layer layer;
  Window window;
  RowScale row{};
  Product& p = layer.product;
  const WindowLists lists = {kernel_size, stride, padding, dilation, spacing};
  ETX_TRY(read_conv(context, {input, weight, weight_sums, lists, groups}, out, window, layer));
  ETX_TRY(check_output(context, {weight_sums, weight_scales, bias, output_min, output_max}, out,
                       Checked(layer.rows.depth)));
  ETX_TRY(read_row_scale(context, input_scale, input_zero_point, row));
  if (context.is_loading()) return Error::Ok;
  window.fill = static_cast<int8_t>(row.offset);
  row.offset += integer().offset;
  layer.row_scale = &row;
  layer.operand_step = p.end * kBlockColumns;
  ETX_TRY(pad_columns(context, weight_sums, layer, p.sums));
  ETX_TRY(pad_columns(context, weight_scales, layer, p.scale));
  if (bias.has_value()) ETX_TRY(pad_columns(context, *bias, layer, p.bias));
  p.group_steps = p.steps;
  p.least = static_cast<float>(output_min);
  p.most = static_cast<float>(output_max);
  p.y = out.mutable_data_ptr<float>();
  p.y_stride = weight_sums.numel();
  layer.multiply = integer().float_product;
  return run_layer(context, layer);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::dynamic_conv.out", dynamic_conv_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(dynamic_conv_kernels, kRows);

}  // namespace etx::portable
