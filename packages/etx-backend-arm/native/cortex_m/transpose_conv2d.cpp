// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"
#include "cortex_m/machine.h"
#include "cortex_m/product.h"

namespace etx::cortex_m {
namespace {

struct TransposedConv {
  Image in, out;
  Window window;
};

/// The point of the input that tap `i` of the window multiplies for point `at` of the output, or
/// -1.
int32_t source(const Window& w, int direction, int32_t at, int32_t i, int32_t size) {
  const int32_t from = at + w.padding[direction] - i * w.dilation[direction];
  if (from < 0 || from % w.stride[direction] != 0) return -1;
  const int32_t point = from / w.stride[direction];
  return point < size ? point : -1;
}

/// Copies what the taps of a window multiply; `zero` where there is nothing.
void copy_taps(const TransposedConv& c, const int8_t* image, int32_t oy, int32_t ox, int8_t zero,
               int8_t* to) {
  const int32_t point = c.in.channels;
  for (int32_t i = 0; i < c.window.kernel[0]; ++i) {
    const int32_t y = source(c.window, 0, oy, i, c.in.height);
    for (int32_t j = 0; j < c.window.kernel[1]; ++j, to += point) {
      const int32_t x = source(c.window, 1, ox, j, c.in.width);
      if (y < 0 || x < 0) {
        fill_bytes(to, point, zero);
      } else {
        copy_bytes(image + (y * c.in.width + x) * point, point, to);
      }
    }
  }
}

void run(const TransposedConv& c, const Product& product, int8_t zero, const int8_t* input,
         int8_t* taps, int8_t* out) {
  const Rows row = {taps, 1, product.depth};
  for (int32_t n = 0; n < c.in.count; ++n) {
    for (int32_t oy = 0; oy < c.out.height; ++oy) {
      for (int32_t ox = 0; ox < c.out.width; ++ox, out += c.out.channels) {
        copy_taps(c, input, oy, ox, zero, taps);
        multiply(product, row, out, c.out.channels);
      }
    }
    input += c.in.height * c.in.width * c.in.channels;
  }
}

/// The output's height or width, at most 2^24; or -1.
int32_t grown_size(const Window& w, int direction, int32_t input, int32_t more) {
  const int64_t size = int64_t{input - 1} * w.stride[direction] - 2 * w.padding[direction] +
                       w.dilation[direction] * (w.kernel[direction] - 1) + more + 1;
  return size > 0 && size <= (1 << 24) ? static_cast<int32_t>(size) : -1;
}

template <Order order>
Error transpose_conv2d_out(Context& context, const Tensor& input, const Tensor& weight,
                           const std::optional<Tensor>& bias, IntList stride, IntList padding,
                           IntList output_padding, IntList dilation, int64_t input_offset,
                           int64_t output_offset, const Tensor& multipliers, const Tensor& shifts,
                           int64_t low, int64_t high, const Tensor&, const Tensor&, Tensor& out) {
  TransposedConv c{};
  Layer layer{};
  Window more{};
  ETX_TRY(read_image(context, input, order, c.in));
  ETX_CHECK(context, weight.dim() == 4 && c.in.channels > 0 && weight.size(3) == c.in.channels,
            InvalidArgument, "weight must be (outputs, height, width, inputs)");
  const int64_t kernel[2] = {weight.size(1), weight.size(2)};
  const IntList sizes(kernel, 2);
  ETX_TRY(read_window(context, sizes, stride, padding, dilation, c.window));
  ETX_TRY(read_window(context, sizes, stride, output_padding, dilation, more));
  ETX_CHECK(context, kernel[0] * kernel[1] * c.in.channels <= kMostProducts, NotSupported,
            "a sum must have at most 43,800 products");
  const auto channels = static_cast<int32_t>(weight.size(0));
  c.out = {c.in.count, grown_size(c.window, 0, c.in.height, more.padding[0]),
           grown_size(c.window, 1, c.in.width, more.padding[1]), channels};
  ETX_CHECK(context, c.out.height > 0 && c.out.width > 0, InvalidArgument,
            "the padding must leave points of the output");
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, layer));
  ETX_TRY(read_constants(context, weight, bias, multipliers, shifts, channels, layer));
  ETX_TRY(resize_image(context, c.out, order, out));
  const int32_t depth = static_cast<int32_t>(kernel[0] * kernel[1]) * c.in.channels;
  auto* const start = context.allocate_temp_array<int32_t>(static_cast<size_t>(channels));
  auto* const taps = context.allocate_temp_array<int8_t>(static_cast<size_t>(depth));
  ETX_CHECK(context, start != nullptr && taps != nullptr, MemoryAllocationFailed,
            "not enough temporary memory for a window of the input");
  const Product product = {layer.weight,      depth,        channels,      start,
                           layer.multipliers, layer.shifts, layer.epilogue};
  fold_offset(product, layer.bias, layer.input_offset, start);
  run(c, product, static_cast<int8_t>(-layer.input_offset), input.const_data_ptr<int8_t>(), taps,
      out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_transpose_conv2d.out",
                        transpose_conv2d_out<Order::Nchw>),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_transpose_conv2d_nhwc.out",
                        transpose_conv2d_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(transpose_conv2d_kernels, kRows);

}  // namespace etx::cortex_m
