// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_shape.h"

#include "core/shape.h"

namespace etx::portable {
namespace {

constexpr int64_t kLargest = INT32_MAX;

/// Copies `list` (one item an axis, or one for all) to the last `rank` axes.
Error read_axes(Context& context, IntList list, int rank, int64_t lowest, int64_t* axes) {
  ETX_CHECK(context, list.size() == static_cast<size_t>(rank) || list.size() == 1, InvalidArgument,
            "stride, padding, dilation and output_padding must have one item per spatial "
            "dimension, or one");
  for (int i = 0; i < rank; ++i) {
    const int64_t value = list[list.size() == 1 ? 0 : static_cast<size_t>(i)];
    ETX_CHECK(context, value >= lowest && value <= kLargest, InvalidArgument,
              "stride and dilation must be positive, padding and output_padding not negative");
    axes[ConvShape::kAxes - rank + i] = value;
  }
  return Error::Ok;
}

Error check_operands(Context& context, const Tensor& input, const Tensor& weight,
                     const std::optional<Tensor>& bias, bool transposed, int64_t groups) {
  const ssize_t rank = input.dim() - 2;
  ETX_CHECK(context, rank >= 1 && rank <= ConvShape::kAxes && weight.dim() == input.dim(),
            InvalidArgument,
            "input must have a batch, a channel and one to three spatial dimensions, and weight "
            "the same rank");
  ETX_CHECK(context, groups >= 1 && groups <= kLargest && weight.size(0) % groups == 0,
            InvalidArgument, "groups must be positive and divide the first dimension of weight");
  const Checked channels = transposed ? weight.size(0) : Checked(weight.size(1)) * groups;
  ETX_CHECK(context, channels.is(input.size(1)), InvalidArgument,
            "input must have as many channels as weight and groups ask for");
  if (bias.has_value()) {
    const Checked outputs = transposed ? Checked(weight.size(1)) * groups : weight.size(0);
    ETX_CHECK(context, bias->dim() == 1 && outputs.is(bias->numel()), InvalidArgument,
              "bias must have one element per output channel");
  }
  return Error::Ok;
}

}  // namespace

bool ConvShape::is_pointwise() const {
  bool simple = !transposed;
  for (int i = 0; i < kAxes; ++i) {
    simple = simple && kernel[i] == 1 && stride[i] == 1 && padding[i] == 0;
  }
  return simple;
}

Error read_conv_shape(Context& context, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias, IntList stride, IntList padding,
                      IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                      ConvShape& shape) {
  ETX_TRY(check_operands(context, input, weight, bias, transposed, groups));
  const int rank = static_cast<int>(input.dim()) - 2;
  int64_t extra[ConvShape::kAxes] = {0, 0, 0};
  ETX_TRY(read_axes(context, stride, rank, 1, shape.stride));
  ETX_TRY(read_axes(context, padding, rank, 0, shape.padding));
  ETX_TRY(read_axes(context, dilation, rank, 1, shape.dilation));
  if (transposed) ETX_TRY(read_axes(context, output_padding, rank, 0, extra));
  shape.transposed = transposed;
  shape.batch = input.size(0);
  shape.groups = groups;
  shape.in_channels = input.size(1) / groups;
  shape.out_channels = transposed ? weight.size(1) : weight.size(0) / groups;
  for (int i = 0; i < rank; ++i) {
    const int a = ConvShape::kAxes - rank + i;
    const int64_t in = input.size(i + 2), kernel = weight.size(i + 2);
    const Checked reach = Checked(shape.dilation[a]) * (kernel - 1) + 1;
    ETX_CHECK(context, kernel >= 1 && reach.is_within(1, kLargest), InvalidArgument,
              "weight must not be empty, nor reach over more than 2147483647 elements");
    const Checked margins = Checked(2) * shape.padding[a];
    Checked out;
    if (transposed) {
      ETX_CHECK(context, extra[a] < shape.stride[a] || extra[a] < shape.dilation[a],
                InvalidArgument, "output_padding must be less than stride or dilation");
      out = Checked(in - 1) * shape.stride[a] - margins + reach + extra[a];
      ETX_CHECK(context, in >= 1 && out.is_within(0, kLargest), InvalidArgument,
                "the transposed convolution must not have a result of negative size");
    } else {
      const int64_t room = (in + margins - reach).value_or(-1);
      ETX_CHECK(context, room >= 0, InvalidArgument,
                "the kernel must not be larger than the padded input");
      out = room / shape.stride[a] + 1;
    }
    shape.in[a] = in;
    shape.kernel[a] = kernel;
    shape.out[a] = out.value_or(0);
  }
  return Error::Ok;
}

}  // namespace etx::portable
