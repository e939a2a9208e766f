// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/integer/window_shape.h"

namespace etx::portable {
namespace {

/// The points of the input in the window of output point (oy, ox): those of `kernel` that lie
/// inside, from `first` on, `count` of them in each direction.
struct Reach {
  int64_t first[2], count[2];
  Reach(const Window& w, int64_t oy, int64_t ox) {
    const int64_t at[2] = {oy * w.stride[0] - w.before[0], ox * w.stride[1] - w.before[1]};
    for (int i = 0; i < 2; ++i) {
      const int64_t skip = at[i] < 0 ? divide_up(-at[i], w.dilation[i]) : 0;
      first[i] = at[i] + skip * w.dilation[i];
      const int64_t room = first[i] < w.in[i] ? divide_up(w.in[i] - first[i], w.dilation[i]) : 0;
      count[i] = max<int64_t>(min(w.kernel[i] - skip, room), 0);
    }
  }
  int64_t points() const { return count[0] * count[1]; }
};

/// Calls `f(point of the input)` for each of them.
template <typename F>
void each_point(const Window& w, const Reach& r, const int8_t* image, const F& f) {
  for (int64_t i = 0; i < r.count[0]; ++i) {
    const int8_t* x = image + ((r.first[0] + i * w.dilation[0]) * w.in[1] + r.first[1]) * w.pixel;
    for (int64_t j = 0; j < r.count[1]; ++j, x += w.dilation[1] * w.pixel) f(x);
  }
}

/// Calls `f(image, oy, ox, output point)` for all points of the output.
template <typename F>
void each_output(Context& context, const Window& w, const Tensor& input, const Tensor& out,
                 const F& f) {
  const int64_t lines = input.size(0) * w.out[0];
  const int64_t line_work = w.out[1] * w.pixel * w.kernel[0] * w.kernel[1];
  context.parallel_for(
      0, lines, 1 + kThreadWork / (line_work + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int8_t* const image =
              input.const_data_ptr<int8_t>() + i / w.out[0] * w.in[0] * w.in[1] * w.pixel;
          int8_t* y = out.mutable_data_ptr<int8_t>() + i * w.out[1] * w.pixel;
          for (int64_t ox = 0; ox < w.out[1]; ++ox, y += w.pixel) f(image, i % w.out[0], ox, y);
        }
      });
}

Error begin(Context& context, const Tensor& input, const WindowLists& lists, const Tensor& out,
            Window& window) {
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_TRY(read_window(context, input, lists, window));
  const int64_t taps = (Checked(window.kernel[0]) * window.kernel[1]).value_or(INT64_MAX);
  ETX_CHECK(context, taps <= INT32_MAX / 256, InvalidArgument,
            "kernel_size must be of less than 2^23 points, so that sums fit int32");
  return resize_window_out(context, input, window, window.pixel, out);
}

/// out = max over the window; nothing outside of the input counts.
Error quantized_max_pool_out(Context& context, const Tensor& input, IntList kernel_size,
                             IntList stride, IntList padding, IntList dilation, Tensor& out) {
  Window w;
  ETX_TRY(begin(context, input, {kernel_size, stride, padding, dilation, {}}, out, w));
  if (context.is_loading()) return Error::Ok;
  each_output(context, w, input, out, [&](const int8_t* image, int64_t oy, int64_t ox, int8_t* y) {
    memset(y, -128, static_cast<size_t>(w.pixel));
    each_point(w, Reach(w, oy, ox), image,
               [&](const int8_t* x) { integer().keep_largest(x, y, w.pixel); });
  });
  return Error::Ok;
}

constexpr int64_t kChannels = 256;

/// out = clamp(round(sum of (input - zero point) * (scale / count)) + zero point).
Error quantized_avg_pool_out(Context& context, const Tensor& input, IntList kernel_size,
                             IntList stride, IntList padding, bool count_include_pad, double scale,
                             int64_t input_zero_point, int64_t output_zero_point,
                             int64_t output_min, int64_t output_max, Tensor& out) {
  Window w;
  Bounds bounds;
  float factor = 0;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, bounds));
  ETX_TRY(read_scale(context, scale, factor));
  ETX_TRY(begin(context, input, {kernel_size, stride, padding, {}, {}}, out, w));
  if (context.is_loading()) return Error::Ok;
  const int64_t whole = w.kernel[0] * w.kernel[1];
  each_output(context, w, input, out, [&](const int8_t* image, int64_t oy, int64_t ox, int8_t* y) {
    const Reach reach(w, oy, ox);
    const int64_t count = count_include_pad ? whole : max<int64_t>(reach.points(), 1);
    const int32_t start = static_cast<int32_t>(-input_zero_point * reach.points());
    for (int64_t c = 0; c < w.pixel; c += kChannels) {
      int32_t sums[kChannels];
      const int64_t n = min(w.pixel - c, kChannels);
      for (int64_t k = 0; k < n; ++k) sums[k] = start;
      each_point(w, reach, image + c, [&](const int8_t* x) { integer().accumulate(x, sums, n); });
      integer().requantize(sums, factor / static_cast<float>(count), bounds, y + c, n);
    }
  });
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_max_pool.out", quantized_max_pool_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
    ETX_KERNEL("etx::quantized_avg_pool.out", quantized_avg_pool_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_pool_kernels, kRows);

}  // namespace etx::portable
