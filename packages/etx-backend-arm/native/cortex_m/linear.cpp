// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/dot.h"
#include "cortex_m/families.h"
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

bool is_int8(const Tensor& tensor) {
  return tensor.scalar_type() == ScalarType::Char && tensor.is_contiguous() && tensor.dim() > 0;
}

bool are_vector(const std::optional<Tensor>& tensor, int64_t count) {
  return !tensor || (tensor->scalar_type() == ScalarType::Int && tensor->numel() == count);
}

/// The number of channel `i`; one number stands for all channels.
int32_t of_channel(IntList list, int64_t i) {
  return static_cast<int32_t>(list[list.size() == 1 ? 0 : static_cast<size_t>(i)]);
}

struct Linear {
  int32_t depth, channels, filter_offset;
  Layer layer;
  const int32_t* start;
  IntList multipliers, shifts;
};

template <int channels>
void finish(const Linear& l, const int8_t* x, int32_t channel, int8_t* out) {
  int32_t sums[channels] = {};
  const int8_t* const weight = l.layer.weight + channel * l.depth;
  add_products<channels>(x, weight, l.depth, l.depth, l.layer.input_offset, sums);
  int32_t whole = 0;
  for (int32_t k = 0; l.filter_offset != 0 && k < l.depth; ++k)
    whole += x[k] + l.layer.input_offset;
  for (int32_t i = 0; i < channels; ++i) {
    const int32_t c = channel + i;
    int32_t sum = add(sums[i], whole * l.filter_offset);
    if (l.start != nullptr) sum = add(sum, l.start[c]);
    out[c] = l.layer.epilogue(sum, {of_channel(l.multipliers, c), of_channel(l.shifts, c)});
  }
}

/// With `kernel_sum`, which holds the bias and the part of the offset, the sums are of `input`.
Error linear_out(Context& context, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias, const std::optional<Tensor>& kernel_sum,
                 int64_t input_offset, int64_t filter_offset, int64_t output_offset,
                 IntList multipliers, IntList shifts, int64_t high, int64_t low, Tensor& out) {
  ETX_CHECK(context, is_int8(input) && is_int8(out) && is_int8(weight) && weight.dim() == 2,
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
  Linear l{static_cast<int32_t>(depth),
           static_cast<int32_t>(channels),
           static_cast<int32_t>(filter_offset),
           {},
           nullptr,
           multipliers,
           shifts};
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, l.layer));
  l.layer.weight = weight.const_data_ptr<int8_t>();
  if (kernel_sum) {
    l.start = kernel_sum->const_data_ptr<int32_t>();
    l.layer.input_offset = 0;
  } else if (bias) {
    l.start = bias->const_data_ptr<int32_t>();
  }
  const ssize_t rows = input.numel() / depth;
  ETX_CHECK(context, out.size(-1) == channels && out.numel() == rows * channels, InvalidArgument,
            "out must have a row of outputs for each row of input");
  const int8_t* x = input.const_data_ptr<int8_t>();
  int8_t* y = out.mutable_data_ptr<int8_t>();
  for (ssize_t row = 0; row < rows; ++row, x += depth, y += channels) {
    int32_t c = 0;
    for (; c + 4 <= l.channels; c += 4) finish<4>(l, x, c, y);
    for (; c < l.channels; ++c) finish<1>(l, x, c, y);
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_KERNEL("cortex_m::quantized_linear.out", linear_out)};

}  // namespace

ETX_KERNEL_TABLE(linear_kernels, kRows);

}  // namespace etx::cortex_m
