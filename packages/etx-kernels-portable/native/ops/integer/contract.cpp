// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/contract.h"

#include <cmath>
#include <cstring>

#include "core/scratch.h"
#include "core/work.h"

namespace etx::portable {

Error check_zero_point(Context& context, int64_t zero_point, const char* reason) {
  ETX_CHECK(context, is_int8(zero_point), InvalidArgument, reason);
  return Error::Ok;
}

Error read_bounds(Context& context, int64_t zero_point, int64_t low, int64_t high, Bounds& bounds) {
  ETX_CHECK(context, is_int8(zero_point), InvalidArgument,
            "output_zero_point must be within int8, -128 to 127");
  ETX_CHECK(context, is_int8(low) && is_int8(high) && low <= high, InvalidArgument,
            "output_min and output_max must be within int8, and output_min not above output_max");
  bounds = {static_cast<int32_t>(zero_point), static_cast<int32_t>(low),
            static_cast<int32_t>(high)};
  return Error::Ok;
}

Error read_scale(Context& context, double scale, bool may_be_negative, const char* reason,
                 float& value) {
  value = static_cast<float>(scale);
  ETX_CHECK(context, std::isfinite(value) && value != 0 && (value > 0 || may_be_negative),
            InvalidArgument, reason);
  return Error::Ok;
}

Error set_sizes(Context& context, Span<const Tensor> inputs, const Tensor& out,
                const Shape& shape) {
  bool known = context.has_sizes(out);
  for (const Tensor& input : inputs) known &= context.has_sizes(input);
  if (known) return resize_out(context, out, shape);
  ETX_CHECK(context, shape.rank() == static_cast<size_t>(out.dim()), InvalidArgument,
            "out must have the rank of the result");
  return Error::Ok;
}

Error check_int8(Context& context, const Tensor& tensor, const char* reason) {
  ETX_CHECK(context, tensor.scalar_type() == ScalarType::Char && tensor.is_contiguous(),
            InvalidArgument, reason);
  return Error::Ok;
}

Error check_packed(Context& context, const Tensor& weight, ScalarType type, int64_t groups,
                   int64_t columns, int64_t depth, int64_t per_block) {
  ETX_CHECK(context, weight.scalar_type() == type && weight.is_contiguous(), InvalidArgument,
            "weight must be contiguous int8, or uint8 where it holds int4");
  ETX_CHECK(context,
            weight.dim() == 4 && weight.size(2) == kBlockColumns && weight.size(3) == kBlockDepth &&
                (Checked(groups) * divide_up(columns, kBlockColumns)).is(weight.size(0)) &&
                weight.size(1) == divide_up(depth, per_block),
            InvalidArgument,
            "weight must be packed: (groups * ceil(N / 16), ceil(K / 4), 16, 4), int4 ceil(K / 8)");
  return Error::Ok;
}

bool are_within(const Tensor& tensor, int64_t most) {
  const int32_t* const x = tensor.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (x[i] < -most || x[i] > most) return false;
  }
  return true;
}

namespace {

constexpr char kTooDeep[] =
    "sums must fit int32: the depth times 255 * 128, and |bias|, must be less than 2^31";
constexpr char kWrongScale[] = "scale must be finite and greater than 0";

Error check_columns(Context& context, const Tensor& sums, const std::optional<Tensor>& bias,
                    const Tensor& scale, Checked all, Checked depth, int64_t most) {
  ETX_CHECK(context,
            sums.scalar_type() == ScalarType::Int && sums.is_contiguous() && all.is(sums.numel()),
            InvalidArgument, "weight_sums must be int32, one for each output channel");
  ETX_CHECK(
      context,
      scale.scalar_type() == ScalarType::Float && scale.is_contiguous() && all.is(scale.numel()),
      InvalidArgument, "scale must be float32, one for each output channel");
  ETX_CHECK(context,
            !bias.has_value() || (bias->scalar_type() == ScalarType::Int && bias->is_contiguous() &&
                                  all.is(bias->numel())),
            InvalidArgument, "bias must be int32, one for each output channel");
  ETX_CHECK(context, most >= 0, InvalidArgument, kTooDeep);
  if (!context.is_loading()) return Error::Ok;
  const bool are_sums = !context.has_data(sums) || are_within(sums, (depth * 128).value_or(0));
  ETX_CHECK(context, are_sums, InvalidArgument, kWrongSums);
  ETX_CHECK(context, !bias.has_value() || !context.has_data(*bias) || are_within(*bias, most),
            InvalidArgument, kTooDeep);
  ETX_CHECK(context,
            !context.has_data(scale) ||
                integer().are_scales(scale.const_data_ptr<float>(), scale.numel()),
            InvalidArgument, kWrongScale);
  return Error::Ok;
}

}  // namespace

Error read_columns(Context& context, const Tensor& sums, const std::optional<Tensor>& bias,
                   const Tensor& scale, int64_t columns, int64_t groups, int64_t depth,
                   int64_t offset, ColumnOperands& operands) {
  const int64_t most = INT32_MAX - (Checked(depth) * (255 * 128)).value_or(INT64_MAX / 2);
  ETX_TRY(check_columns(context, sums, bias, scale, Checked(columns) * groups, depth, most));
  if (context.is_loading()) return Error::Ok;
  const int64_t panel = integer().panel_blocks * kBlockColumns;
  operands.padded = divide_up(columns, panel) * panel;
  ETX_ASSIGN(operands.start, scratch<int32_t>(context, operands.padded * groups,
                                              "no temporary memory for the columns' operands"));
  ETX_ASSIGN(operands.scale, scratch<float>(context, operands.padded * groups,
                                            "no temporary memory for the columns' operands"));
  const int32_t* const b = bias.has_value() ? bias->const_data_ptr<int32_t>() : nullptr;
  const float* const factors = scale.const_data_ptr<float>();
  bool fits = true;
  for (int64_t g = 0; g < groups; ++g) {
    int32_t* const start = operands.start + g * operands.padded;
    float* const factor = operands.scale + g * operands.padded;
    fits &= integer().start_sums(
        b == nullptr ? b : b + g * columns, sums.const_data_ptr<int32_t>() + g * columns,
        static_cast<int32_t>(offset), static_cast<int32_t>(most), start, columns);
    memcpy(factor, factors + g * columns, static_cast<size_t>(columns) * sizeof(float));
    for (int64_t i = columns; i < operands.padded; ++i) start[i] = 0, factor[i] = 0;
  }
  ETX_CHECK(context, fits, InvalidArgument, kTooDeep);
  ETX_CHECK(context, integer().are_scales(factors, scale.numel()), InvalidArgument, kWrongScale);
  return Error::Ok;
}

}  // namespace etx::portable
