// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

/// Largest values of what lies inside of the window, within the activation's bounds.
template <Order order>
Error max_pool2d_out(Context& context, const Tensor& input, IntList kernel, IntList stride,
                     IntList padding, IntList dilation, bool ceil_mode, int64_t input_zero_point,
                     int64_t output_zero_point, int64_t low, int64_t high, Tensor& out) {
  Image in, result;
  Window w;
  Layer layer{};
  ETX_CHECK(context, input_zero_point == output_zero_point, InvalidArgument,
            "input_zero_point and output_zero_point must be equal");
  ETX_TRY(read_epilogue(context, 0, 0, low, high, layer));
  ETX_TRY(read_image(context, input, order, in));
  ETX_TRY(read_window(context, kernel, stride, padding, dilation, w));
  result = {in.count, output_size(w, 0, in.height, ceil_mode),
            output_size(w, 1, in.width, ceil_mode), in.channels};
  ETX_CHECK(context, result.height > 0 && result.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_TRY(resize_image(context, result, order, out));
  const int8_t* image = input.const_data_ptr<int8_t>();
  int8_t* to = out.mutable_data_ptr<int8_t>();
  for (int32_t n = 0; n < in.count; ++n, image += in.height * in.width * in.channels) {
    for (int32_t oy = 0; oy < result.height; ++oy) {
      const Reach y(w, 0, oy, in.height);
      for (int32_t ox = 0; ox < result.width; ++ox) {
        const Reach x(w, 1, ox, in.width);
        for (int32_t c = 0; c < in.channels; ++c) {
          int32_t most = layer.epilogue.low;
          for (int32_t i = 0; i < y.count(); ++i) {
            const int32_t line = y.first + i * w.dilation[0];
            const int8_t* at = image + (line * in.width + x.first) * in.channels + c;
            for (int32_t j = 0; j < x.count(); ++j) {
              const int32_t value = at[j * w.dilation[1] * in.channels];
              if (value > most) most = value;
            }
          }
          *to++ = static_cast<int8_t>(most > layer.epilogue.high ? layer.epilogue.high : most);
        }
      }
    }
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_max_pool2d.out", max_pool2d_out<Order::Nchw>),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_max_pool2d_nhwc.out", max_pool2d_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(max_pool2d_kernels, kRows);

}  // namespace etx::cortex_m
