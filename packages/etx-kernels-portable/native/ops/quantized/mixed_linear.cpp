// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/operand.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

/// The operands of a product with an int8 matrix, as floats.
struct Operands {
  int64_t m = 0;
  int64_t depth = 0;
  const float* x = nullptr;
  const float* scales = nullptr;
  ResultOperand result;  ///< m x n.
};

Error read_operands(Context& context, const Tensor& input, const Tensor& weight,
                    const Tensor& scales, const std::optional<Tensor>& zero_points, int64_t n,
                    const Tensor& out, Operands& operands) {
  ETX_CHECK(context, !zero_points.has_value(), NotSupported, "weight_zero_points must be None");
  ETX_CHECK(context, weight.scalar_type() == ScalarType::Char, NotSupported, "weight must be int8");
  ETX_CHECK(context,
            is_floating(input.scalar_type()) && is_floating(scales.scalar_type()) &&
                is_floating(out.scalar_type()),
            NotSupported, "input, weight_scales and out must be of a floating dtype");
  ETX_CHECK(context,
            input.is_contiguous() && weight.is_contiguous() && scales.is_contiguous() &&
                out.is_contiguous(),
            NotSupported, "input, weight, weight_scales and out must be contiguous");
  ETX_CHECK(context, out.impl() != input.impl() && out.impl() != scales.impl(), InvalidArgument,
            "out must not be an input");
  Shape shape(input);
  shape[static_cast<size_t>(input.dim()) - 1] = n;
  ETX_TRY(resize_out(context, out, shape));
  operands.depth = input.size(-1);
  operands.m = out.numel() == 0 ? 0 : 1;
  for (ssize_t d = 0; d < input.dim() - 1; ++d) operands.m *= input.size(d);
  ETX_TRY(read_operand(context, input, ScalarType::Float, operands.x));
  ETX_TRY(read_operand(context, scales, ScalarType::Float, operands.scales));
  return operands.result.prepare(context, out, ScalarType::Float);
}

/// out = input (weight * scales): the rows of weight (k x n) have a scale each.
Error mixed_mm_out(Context& context, const Tensor& input, const Tensor& weight,
                   const Tensor& weight_scales, std::optional<Tensor> weight_zero_points,
                   Tensor& out) {
  ETX_CHECK(context,
            input.dim() == 2 && weight.dim() == 2 && input.size(1) == weight.size(0) &&
                weight_scales.numel() == weight.size(0),
            InvalidArgument, "input must be m x k, weight k x n, weight_scales k");
  const int64_t n = weight.size(1);
  Operands operands;
  ETX_TRY(
      read_operands(context, input, weight, weight_scales, weight_zero_points, n, out, operands));
  const int8_t* w = weight.const_data_ptr<int8_t>();
  context.parallel_for(0, operands.m, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const y = operands.result.data<float>() + row * n;
      for (int64_t j = 0; j < n; ++j) y[j] = 0;
      for (int64_t k = 0; k < operands.depth; ++k) {
        const float x = operands.x[row * operands.depth + k] * operands.scales[k];
        for (int64_t j = 0; j < n; ++j) y[j] += x * static_cast<float>(w[k * n + j]);
      }
    }
  });
  return operands.result.finish(context, out);
}

float dot(const float* a, const int8_t* b, int64_t n) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * static_cast<float>(b[i + k]);
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < n; ++i) sum += a[i] * static_cast<float>(b[i]);
  return sum;
}

/// out = input (weight * scales)^T: the rows of weight (n x k) have a scale each, or one for each
/// of equally long groups.
Error mixed_linear_out(Context& context, const Tensor& input, const Tensor& weight,
                       const Tensor& weight_scales, std::optional<Tensor> weight_zero_points,
                       std::optional<ScalarType> dtype, Tensor& out) {
  ETX_CHECK(context, input.dim() > 0 && weight.dim() == 2 && input.size(-1) == weight.size(1),
            InvalidArgument, "input must be m x k and weight n x k");
  ETX_CHECK(context, !dtype.has_value() || out.scalar_type() == *dtype, InvalidArgument,
            "out must be of dtype");
  const int64_t n = weight.size(0);
  const int64_t groups = weight_scales.dim() == 2 ? weight_scales.size(1) : 1;
  ETX_CHECK(context,
            (weight_scales.dim() == 1 || weight_scales.dim() == 2) && weight_scales.size(0) == n &&
                groups > 0 && weight.size(1) % groups == 0,
            InvalidArgument, "weight_scales must have a number, or a row of groups, for each row");
  Operands operands;
  ETX_TRY(
      read_operands(context, input, weight, weight_scales, weight_zero_points, n, out, operands));
  const int8_t* w = weight.const_data_ptr<int8_t>();
  const int64_t length = operands.depth / groups;
  context.parallel_for(
      0, n, 1 + 16384 / (operands.depth * operands.m + 1), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          for (int64_t row = 0; row < operands.m; ++row) {
            const float* const x = operands.x + row * operands.depth;
            float sum = 0;
            for (int64_t g = 0; g < groups; ++g) {
              sum += operands.scales[j * groups + g] *
                     dot(x + g * length, w + j * operands.depth + g * length, length);
            }
            operands.result.data<float>()[row * n + j] = sum;
          }
        }
      });
  return operands.result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("quantized_decomposed::mixed_mm.out", mixed_mm_out, Floating::bits),
    ETX_KERNEL("quantized_decomposed::mixed_linear.out", mixed_linear_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(mixed_linear_kernels, kRows);

}  // namespace etx::portable
