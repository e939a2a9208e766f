// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"
#include "cortex_m/machine.h"
#include "cortex_m/product.h"

namespace etx::cortex_m {
namespace {

struct Conv {
  Image in, out;
  Window window;
  Layer layer;
  /// Channels of the input and of the output in one group.
  int32_t group_in, group_out;
};

/// Windows that are copied next to each other before they are multiplied, where there is room.
constexpr int32_t kWindows = 8;

/// What a run needs besides its tensors: the sums' beginnings, if not the bias, `count` windows.
struct Scratch {
  int32_t* start;
  int8_t* windows;
  int32_t count;
};

/// Copies the window of one group's channels; what lies outside is zero, as its zero point is.
void copy_window(const Conv& c, const int8_t* image, const Reach& y, const Reach& x, int8_t* to) {
  const Window& w = c.window;
  const auto zero = static_cast<int8_t>(-c.layer.input_offset);
  const int32_t point = c.group_in, line = w.kernel[1] * point;
  const bool is_run = w.dilation[1] == 1 && point == c.in.channels;
  if (y.count() != w.kernel[0] || x.count() != w.kernel[1])
    fill_bytes(to, w.kernel[0] * line, zero);
  to += y.begin * line + x.begin * point;
  const int8_t* from = image + (y.first * c.in.width + x.first) * c.in.channels;
  const int32_t below = w.dilation[0] * c.in.width * c.in.channels, points = x.count();
  for (int32_t i = y.count(); i > 0; --i, to += line, from += below) {
    if (is_run) {
      copy_bytes(from, points * point, to);
      continue;
    }
    const int8_t* at = from;
    for (int32_t j = 0; j < points; ++j, at += w.dilation[1] * c.in.channels) {
      copy_bytes(at, point, to + j * point);
    }
  }
}

/// One group of an image; `input` and `out` point at its first channels.
void run_windows(const Conv& c, const Product& product, const Scratch& scratch, const int8_t* input,
                 int8_t* out) {
  for (int32_t oy = 0; oy < c.out.height; ++oy) {
    const Reach y(c.window, 0, oy, c.in.height);
    for (int32_t ox = 0; ox < c.out.width;) {
      Rows rows = {scratch.windows, 0, product.depth};
      for (; rows.count < scratch.count && ox < c.out.width; ++rows.count, ++ox) {
        const Reach x(c.window, 1, ox, c.in.width);
        copy_window(c, input, y, x, scratch.windows + rows.count * product.depth);
      }
      multiply(product, rows, out, c.out.channels);
      out += rows.count * c.out.channels;
    }
  }
}

/// As above, where windows are single points inside of the image.
void run_points(const Conv& c, const Product& product, const int8_t* input, int8_t* out) {
  const Window& w = c.window;
  Rows rows = {input, c.out.width, w.stride[1] * c.in.channels};
  int32_t lines = c.out.height;
  if (w.stride[0] == 1 && w.stride[1] == 1) {
    rows.count *= lines;
    lines = 1;
  }
  for (int32_t i = 0; i < lines; ++i, out += rows.count * c.out.channels) {
    multiply(product, rows, out, c.out.channels);
    rows.first += w.stride[0] * c.in.width * c.in.channels;
  }
}

bool has_points(const Window& w) {
  return w.kernel[0] == 1 && w.kernel[1] == 1 && w.padding[0] == 0 && w.padding[1] == 0;
}

void run(const Conv& c, const Scratch& scratch, const int8_t* input, int8_t* out) {
  const Layer& l = c.layer;
  const int32_t depth = c.window.kernel[0] * c.window.kernel[1] * c.group_in;
  Product product = {l.weight,      depth,    c.group_out, scratch.start,
                     l.multipliers, l.shifts, l.epilogue};
  for (int32_t first = 0; first < c.out.channels; first += c.group_out) {
    const int32_t group = first / c.group_out * c.group_in;
    const int32_t* const bias = l.bias == nullptr ? nullptr : l.bias + first;
    if (scratch.start == nullptr) {
      product.start = bias;
    } else {
      fold_offset(product, bias, l.input_offset, scratch.start);
    }
    const int8_t* image = input + group;
    int8_t* to = out + first;
    for (int32_t n = 0; n < c.in.count; ++n) {
      if (has_points(c.window)) {
        run_points(c, product, image, to);
      } else {
        run_windows(c, product, scratch, image, to);
      }
      image += c.in.height * c.in.width * c.in.channels;
      to += c.out.height * c.out.width * c.out.channels;
    }
    product.weight += c.group_out * depth;
    product.multipliers += c.group_out;
    product.shifts += c.group_out;
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
  const auto channels = static_cast<int32_t>(weight.size(0));
  const auto depth = static_cast<int32_t>(weight.size(3));
  const int32_t groups = depth > 0 && channels > 0 ? c.in.channels / depth : 0;
  ETX_CHECK(context, groups > 0 && c.in.channels % depth == 0 && channels % groups == 0,
            InvalidArgument, "weight must be (outputs, height, width, inputs of one group)");
  ETX_CHECK(context, kernel[0] * kernel[1] * depth <= kMostProducts, NotSupported,
            "a sum must have at most 43,800 products");
  c.group_in = depth;
  c.group_out = channels / groups;
  c.out = {c.in.count, output_size(c.window, 0, c.in.height, false),
           output_size(c.window, 1, c.in.width, false), channels};
  ETX_CHECK(context, c.out.height > 0 && c.out.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, c.layer));
  ETX_TRY(read_constants(context, weight, bias, multipliers, shifts, c.out.channels, c.layer));
  ETX_TRY(resize_image(context, c.out, order, out));
  const auto size = static_cast<size_t>(kernel[0] * kernel[1]) * static_cast<size_t>(c.group_in);
  const bool has_start = c.layer.input_offset == 0 && c.layer.bias != nullptr;
  Scratch scratch{};
  if (!has_start) {
    scratch.start = context.allocate_temp_array<int32_t>(static_cast<size_t>(c.group_out));
  }
  if (!has_points(c.window)) {
    for (scratch.count = kWindows; scratch.count > 0; --scratch.count) {
      const size_t bytes = size * static_cast<size_t>(scratch.count);
      scratch.windows = context.allocate_temp_array<int8_t>(bytes);
      if (scratch.windows != nullptr) break;
    }
  }
  ETX_CHECK(context,
            (has_start || scratch.start != nullptr) &&
                (has_points(c.window) || scratch.windows != nullptr),
            MemoryAllocationFailed, "not enough temporary memory for windows of the input");
  run(c, scratch, input.const_data_ptr<int8_t>(), out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_conv2d.out", conv2d_out<Order::Nchw>),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_conv2d_nhwc.out", conv2d_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(conv2d_kernels, kRows);

}  // namespace etx::cortex_m
