// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"
#include "cortex_m/operands.h"
#include "cortex_m/product.h"

namespace etx::cortex_m {
namespace {

bool is_matrix(const Tensor& tensor) {
  return is_int8(tensor) && tensor.is_contiguous() && tensor.dim() > 0;
}

bool are_vector(const std::optional<Tensor>& tensor, int64_t count) {
  return !tensor || (tensor->scalar_type() == ScalarType::Int && tensor->numel() == count);
}

/// Copies the numbers of the channels; one number stands for all.
void spread(IntList list, int32_t count, int32_t* to) {
  for (int32_t i = 0; i < count; ++i) {
    to[i] = static_cast<int32_t>(list[list.size() == 1 ? 0 : static_cast<size_t>(i)]);
  }
}

/// With `kernel_sum`, which holds the bias and the part of the offset, the sums are of `input`.
Error linear_out(Context& context, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias, const std::optional<Tensor>& kernel_sum,
                 int64_t input_offset, int64_t filter_offset, int64_t output_offset,
                 IntList multipliers, IntList shifts, int64_t high, int64_t low, Tensor& out) {
  ETX_CHECK(context, is_matrix(input) && is_matrix(out) && is_matrix(weight) && weight.dim() == 2,
            InvalidArgument, "input, weights and out must be contiguous int8, weights of rank 2");
  const ssize_t channels = weight.size(0), depth = weight.size(1);
  ETX_CHECK(context, input.size(-1) == depth, InvalidArgument,
            "weights must be (outputs, inputs), inputs the last size of input");
  ETX_CHECK(context, depth > 0 && depth <= kMostProducts / 2 && channels <= (1 << 24), NotSupported,
            "a sum must have at most 21,900 products");
  ETX_CHECK(context, are_vector(bias, channels) && are_vector(kernel_sum, channels),
            InvalidArgument, "bias and kernel_sum must be int32, one for each output");
  const auto fits = [&](IntList list) {
    return list.size() == 1 || list.size() == static_cast<size_t>(channels);
  };
  ETX_CHECK(context, fits(multipliers) && fits(shifts), InvalidArgument,
            "requantize_multipliers and requantize_shifts must be one number, or one an output");
  ETX_CHECK(context, filter_offset >= -255 && filter_offset <= 255, InvalidArgument,
            "filter_offset must be within -255 and 255");
  Layer layer{};
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, layer));
  const ssize_t rows = input.numel() / depth;
  ETX_CHECK(context, out.size(-1) == channels && out.numel() == rows * channels, InvalidArgument,
            "out must have a row of outputs for each row of input");
  const auto count = static_cast<int32_t>(channels);
  auto* const numbers = context.allocate_temp_array<int32_t>(static_cast<size_t>(count) * 4);
  ETX_CHECK(context, numbers != nullptr, MemoryAllocationFailed,
            "not enough temporary memory for four numbers of each output");
  int32_t* const start = numbers + 2 * count;
  spread(multipliers, count, numbers);
  spread(shifts, count, numbers + count);
  Product product = {weight.const_data_ptr<int8_t>(),
                     static_cast<int32_t>(depth),
                     count,
                     start,
                     numbers,
                     numbers + count,
                     layer.epilogue};
  const int32_t offset = kernel_sum ? 0 : layer.input_offset;
  if (kernel_sum) {
    product.start = kernel_sum->const_data_ptr<int32_t>();
  } else {
    fold_offset(product, bias ? bias->const_data_ptr<int32_t>() : nullptr, offset, start);
  }
  const Rows x = {input.const_data_ptr<int8_t>(), static_cast<int32_t>(rows), product.depth};
  int8_t* const to = out.mutable_data_ptr<int8_t>();
  if (filter_offset == 0) {
    multiply(product, x, to, count);
  } else {
    multiply(product, x, {offset, static_cast<int32_t>(filter_offset)}, start + count, to);
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::quantized_linear.out", linear_out)};

}  // namespace

ETX_KERNEL_TABLE(linear_kernels, kRows);

}  // namespace etx::cortex_m
