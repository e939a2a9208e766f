// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

struct Depthwise {
  Image in, out;
  Window window;
  Layer layer;
  /// Channels of the output for each one of the input.
  int32_t multiplier;
};

/// Channels [channel, channel + channels) of a point; with a multiplier of 1 `step` is 1, else 0.
template <int channels>
void finish(const Depthwise& d, const int8_t* image, const Reach& y, const Reach& x,
            int32_t channel, int32_t step, int8_t* out) {
  int32_t sums[channels] = {};
  const Window& w = d.window;
  const int32_t width = d.out.channels, offset = d.layer.input_offset;
  for (int32_t i = 0; i < y.count(); ++i) {
    const int32_t line = y.first + i * w.dilation[0];
    const int8_t* at = image + (line * d.in.width + x.first) * d.in.channels +
                       (step == 1 ? channel : channel / d.multiplier);
    const int8_t* weight =
        d.layer.weight + ((y.begin + i) * w.kernel[1] + x.begin) * width + channel;
    for (int32_t j = 0; j < x.count(); ++j) {
      for (int32_t k = 0; k < channels; ++k) sums[k] += (at[k * step] + offset) * weight[k];
      at += w.dilation[1] * d.in.channels;
      weight += width;
    }
  }
  for (int32_t k = 0; k < channels; ++k) {
    const int32_t c = channel + k;
    out[c] = d.layer.finish(add(sums[k], d.layer.start(c)), c);
  }
}

void run(const Depthwise& d, const int8_t* input, int8_t* out) {
  const int32_t size = d.in.height * d.in.width * d.in.channels;
  const int32_t step = d.multiplier == 1 ? 1 : 0;
  const int32_t group = step == 1 ? d.out.channels : d.multiplier;
  for (int32_t n = 0; n < d.out.count; ++n, input += size) {
    for (int32_t oy = 0; oy < d.out.height; ++oy) {
      const Reach y(d.window, 0, oy, d.in.height);
      for (int32_t ox = 0; ox < d.out.width; ++ox, out += d.out.channels) {
        const Reach x(d.window, 1, ox, d.in.width);
        for (int32_t first = 0; first < d.out.channels; first += group) {
          int32_t c = first;
          for (; c + 4 <= first + group; c += 4) finish<4>(d, input, y, x, c, step, out);
          for (; c < first + group; ++c) finish<1>(d, input, y, x, c, step, out);
        }
      }
    }
  }
}

template <Order order>
Error depthwise_out(Context& context, const Tensor& input, const Tensor& weight,
                    const std::optional<Tensor>& bias, IntList stride, IntList padding,
                    IntList dilation, int64_t depth_multiplier, int64_t input_offset,
                    int64_t output_offset, const Tensor& multipliers, const Tensor& shifts,
                    int64_t low, int64_t high, const Tensor&, Tensor& out) {
  Depthwise d{};
  ETX_TRY(read_image(context, input, order, d.in));
  ETX_CHECK(context,
            weight.dim() == 4 && weight.size(0) == 1 && depth_multiplier > 0 &&
                weight.size(3) <= INT32_MAX && d.in.channels > 0 &&
                weight.size(3) % d.in.channels == 0 &&
                weight.size(3) / d.in.channels == depth_multiplier,
            InvalidArgument, "weight must be (1, height, width, inputs * depth_multiplier)");
  const int64_t kernel[2] = {weight.size(1), weight.size(2)};
  ETX_TRY(read_window(context, IntList(kernel, 2), stride, padding, dilation, d.window));
  ETX_CHECK(context, kernel[0] * kernel[1] <= kMostProducts, NotSupported,
            "a sum must have at most 43,800 products");
  d.multiplier = static_cast<int32_t>(depth_multiplier);
  d.out = {d.in.count, output_size(d.window, 0, d.in.height, false),
           output_size(d.window, 1, d.in.width, false), static_cast<int32_t>(weight.size(3))};
  ETX_CHECK(context, d.out.height > 0 && d.out.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, d.layer));
  ETX_TRY(read_constants(context, weight, bias, multipliers, shifts, d.out.channels, d.layer));
  ETX_TRY(resize_image(context, d.out, order, out));
  run(d, input.const_data_ptr<int8_t>(), out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("cortex_m::quantized_depthwise_conv2d.out", depthwise_out<Order::Nchw>),
    ETX_KERNEL("cortex_m::quantized_depthwise_conv2d_nhwc.out", depthwise_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(depthwise_conv2d_kernels, kRows);

}  // namespace etx::cortex_m
