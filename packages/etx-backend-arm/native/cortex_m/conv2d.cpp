// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/dot.h"
#include "cortex_m/families.h"
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

struct Conv {
  Image in, out;
  Window window;
  Layer layer;
  /// Channels of the input and of the output in one group.
  int32_t group_in, group_out;
};

/// Adds the products of a run of `count` bytes with rows of weights, one each channel.
template <int channels>
void add_window(const Conv& c, const int8_t* image, const Reach& y, const Reach& x, int32_t channel,
                int32_t* sums) {
  const Window& w = c.window;
  const int32_t row = w.kernel[0] * w.kernel[1] * c.group_in;
  const int32_t group = channel / c.group_out * c.group_in;
  const bool is_run = w.dilation[1] == 1 && c.group_in == c.in.channels;
  const int32_t runs = is_run ? 1 : x.count();
  const int32_t length = is_run ? x.count() * c.group_in : c.group_in;
  for (int32_t i = 0; i < y.count(); ++i) {
    const int32_t line = y.first + i * w.dilation[0];
    const int8_t* at = image + (line * c.in.width + x.first) * c.in.channels + group;
    const int8_t* weight =
        c.layer.weight + channel * row + ((y.begin + i) * w.kernel[1] + x.begin) * c.group_in;
    for (int32_t j = 0; j < runs; ++j) {
      add_products<channels>(at, weight, row, length, c.layer.input_offset, sums);
      at += w.dilation[1] * c.in.channels;
      weight += c.group_in;
    }
  }
}

template <int channels>
void finish(const Conv& c, const int8_t* image, const Reach& y, const Reach& x, int32_t channel,
            int8_t* out) {
  int32_t sums[channels] = {};
  add_window<channels>(c, image, y, x, channel, sums);
  for (int32_t i = 0; i < channels; ++i) {
    const int32_t at = channel + i;
    out[at] = c.layer.finish(add(sums[i], c.layer.start(at)), at);
  }
}

void run(const Conv& c, const int8_t* input, int8_t* out) {
  const int32_t size = c.in.height * c.in.width * c.in.channels;
  for (int32_t n = 0; n < c.out.count; ++n, input += size) {
    for (int32_t oy = 0; oy < c.out.height; ++oy) {
      const Reach y(c.window, 0, oy, c.in.height);
      for (int32_t ox = 0; ox < c.out.width; ++ox, out += c.out.channels) {
        const Reach x(c.window, 1, ox, c.in.width);
        for (int32_t channel = 0; channel < c.out.channels;) {
          const int32_t left = c.group_out - channel % c.group_out;
          if (left >= 4) {
            finish<4>(c, input, y, x, channel, out);
            channel += 4;
          } else {
            finish<1>(c, input, y, x, channel, out);
            ++channel;
          }
        }
      }
    }
  }
}

template <Order order>
Error conv2d_out(Context& context, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias, IntList stride, IntList padding,
                 IntList dilation, int64_t input_offset, int64_t output_offset,
                 const Tensor& multipliers, const Tensor& shifts, int64_t low, int64_t high,
                 const Tensor&, Tensor& out) {
  Conv c{};
  ETX_TRY(read_image(context, input, order, c.in));
  ETX_CHECK(context, weight.dim() == 4, InvalidArgument, "weight must be of rank 4");
  const int64_t kernel[2] = {weight.size(1), weight.size(2)};
  ETX_TRY(read_window(context, IntList(kernel, 2), stride, padding, dilation, c.window));
  const int64_t channels = weight.size(0), depth = weight.size(3);
  const int64_t groups = depth > 0 && channels > 0 ? c.in.channels / depth : 0;
  ETX_CHECK(context, groups > 0 && c.in.channels % depth == 0 && channels % groups == 0,
            InvalidArgument, "weight must be (outputs, height, width, inputs of one group)");
  ETX_CHECK(context, kernel[0] * kernel[1] * depth <= kMostProducts, NotSupported,
            "a sum must have at most 43,800 products");
  c.group_in = static_cast<int32_t>(depth);
  c.group_out = static_cast<int32_t>(channels / groups);
  c.out = {c.in.count, output_size(c.window, 0, c.in.height, false),
           output_size(c.window, 1, c.in.width, false), static_cast<int32_t>(channels)};
  ETX_CHECK(context, c.out.height > 0 && c.out.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, c.layer));
  ETX_TRY(read_constants(context, weight, bias, multipliers, shifts, c.out.channels, c.layer));
  ETX_TRY(resize_image(context, c.out, order, out));
  run(c, input.const_data_ptr<int8_t>(), out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("cortex_m::quantized_conv2d.out", conv2d_out<Order::Nchw>),
    ETX_KERNEL("cortex_m::quantized_conv2d_nhwc.out", conv2d_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(conv2d_kernels, kRows);

}  // namespace etx::cortex_m
