// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

/// What decides halves: the scale of input and out, and their zero point.
struct Scale {
  float scale;
  int32_t zero_point;
};

/// A half is decided by the rounding of float32, as in the mean of real numbers `(q - zero_point)
/// * scale`, which is divided by `scale` and rounded to even: `sum` is of such numbers.
int32_t decide_half(float sum, int32_t count, const Scale& s) {
  volatile float mean = sum / static_cast<float>(count);
  volatile float value = mean / s.scale;
  const auto whole = static_cast<int32_t>(value);
  const float rest = value - static_cast<float>(whole);
  const int32_t away = value < 0 ? -1 : 1;
  const float size = rest < 0 ? -rest : rest;
  const bool moves = size > 0.5f || (size == 0.5f && (whole & 1) != 0);
  return whole + (moves ? away : 0) + s.zero_point;
}

/// One channel of a window: `lines` rows of `points` bytes, and how far they are from each other.
struct Points {
  const int8_t* first;
  int32_t lines, line, points, point;
};

int8_t mean(const Points& p, const Scale& s) {
  const int32_t count = p.lines * p.points;
  if (count == 0) return 0;
  int32_t sum = 0;
  for (int32_t i = 0; i < p.lines; ++i) {
    const int8_t* at = p.first + i * p.line;
    for (int32_t j = 0; j < p.points; ++j, at += p.point) sum += *at;
  }
  int32_t whole = sum / count, rest = sum % count;
  if (rest < 0) {
    rest += count;
    --whole;
  }
  if (2 * rest != count) return static_cast<int8_t>(whole + (2 * rest > count ? 1 : 0));
  volatile float real = 0;
  for (int32_t i = 0; i < p.lines; ++i) {
    const int8_t* at = p.first + i * p.line;
    for (int32_t j = 0; j < p.points; ++j, at += p.point) {
      volatile float value = static_cast<float>(*at - s.zero_point) * s.scale;
      real = real + value;
    }
  }
  return static_cast<int8_t>(decide_half(real, count, s));
}

/// multiplier / 2^31 * 2^shift; every step but the first is exact.
float scale_of(int64_t multiplier, int64_t shift) {
  auto scale = static_cast<float>(static_cast<int32_t>(multiplier));
  for (int64_t i = shift - 31; i < 0; ++i) scale *= 0.5f;
  return scale;
}

/// Means of what lies inside of the window; input and out share scale and zero point, so that
/// multiplier and shift, the scale, decide only halves.
template <Order order>
Error avg_pool2d_out(Context& context, const Tensor& input, IntList kernel, IntList stride,
                     IntList padding, bool ceil_mode, int64_t zero_point, int64_t multiplier,
                     int64_t shift, const Tensor&, Tensor& out) {
  Image in, result;
  Window w;
  ETX_TRY(read_image(context, input, order, in));
  ETX_TRY(read_window(context, kernel, stride, padding, {}, w));
  ETX_CHECK(context, int64_t{w.kernel[0]} * w.kernel[1] <= (1 << 22), NotSupported,
            "a window must have at most 2^22 points");
  result = {in.count, output_size(w, 0, in.height, ceil_mode),
            output_size(w, 1, in.width, ceil_mode), in.channels};
  ETX_CHECK(context, result.height > 0 && result.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_CHECK(context,
            zero_point >= -128 && zero_point <= 127 && multiplier > 0 && multiplier <= INT32_MAX &&
                shift >= -31 && shift <= 31,
            InvalidArgument, "zero_point must be of int8, multiplier and shift a positive scale");
  ETX_TRY(resize_image(context, result, order, out));
  const Scale scale = {scale_of(multiplier, shift), static_cast<int32_t>(zero_point)};
  const int8_t* image = input.const_data_ptr<int8_t>();
  int8_t* to = out.mutable_data_ptr<int8_t>();
  for (int32_t n = 0; n < in.count; ++n, image += in.height * in.width * in.channels) {
    for (int32_t oy = 0; oy < result.height; ++oy) {
      const Reach y(w, 0, oy, in.height);
      for (int32_t ox = 0; ox < result.width; ++ox) {
        const Reach x(w, 1, ox, in.width);
        const int8_t* const at = image + (y.first * in.width + x.first) * in.channels;
        Points points = {at, y.count(), in.width * in.channels, x.count(), in.channels};
        for (int32_t c = 0; c < in.channels; ++c, ++points.first) *to++ = mean(points, scale);
      }
    }
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_avg_pool2d.out", avg_pool2d_out<Order::Nchw>),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_avg_pool2d_nhwc.out", avg_pool2d_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(avg_pool2d_kernels, kRows);

}  // namespace etx::cortex_m
