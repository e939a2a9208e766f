// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_IMAGE_H_
#define ETX_CORTEX_M_IMAGE_H_

#include <etx/kernel.h>

#include "cortex_m/fixed_point.h"

/// Functions of this header have `int` for int32_t: another compiler may build their callers, and
/// int32_t is another type for it (cmake/clang.cmake).
namespace etx::cortex_m {

/// Whose order of dimensions a tensor of images has; in memory channels are always the last.
enum class Order : uint8_t { Nchw, Nhwc };

/// The sizes of a tensor of images.
struct Image {
  int32_t count, height, width, channels;
};

/// Errors: InvalidArgument unless `tensor` is int8, of rank 4, with channels last in memory.
Error read_image(Context& context, const Tensor& tensor, Order order, Image& image);

/// Gives `out` these sizes and checks its memory as read_image does.
Error resize_image(Context& context, const Image& image, Order order, Tensor& out);

/// What moves over an image: points of the kernel, distance, zeros before, distance of points.
struct Window {
  int32_t kernel[2], stride[2], padding[2], dilation[2];
};

/// Reads lists of one or two numbers; an empty `stride` is the kernel. Errors: InvalidArgument.
Error read_window(Context& context, IntList kernel, IntList stride, IntList padding,
                  IntList dilation, Window& window);

/// The output's height or width, or -1 where the window does not fit.
int output_size(const Window& window, int direction, int input, bool rounds_up);

/// Points [begin, end) of a window in one direction that lie inside, and where the first is.
struct Reach {
  int32_t begin, end, first;

  Reach(const Window& w, int direction, int32_t at, int32_t size) {
    const int32_t from = at * w.stride[direction] - w.padding[direction];
    const int32_t step = w.dilation[direction];
    begin = from < 0 ? (-from + step - 1) / step : 0;
    const int32_t room = size - from;
    end = room <= 0 ? 0 : (room + step - 1) / step;
    if (end > w.kernel[direction]) end = w.kernel[direction];
    if (end < begin) end = begin;
    first = from + begin * step;
  }
  int32_t count() const { return end - begin; }
};

/// What follows the sums of a layer with a factor for each channel.
struct Layer {
  const int8_t* weight;
  const int32_t* bias;
  const int32_t* multipliers;
  const int32_t* shifts;
  int32_t input_offset;
  Epilogue epilogue;

  int32_t start(int32_t channel) const { return bias == nullptr ? 0 : bias[channel]; }
  int8_t finish(int32_t sum, int32_t channel) const {
    return epilogue(sum, {multipliers[channel], shifts[channel]});
  }
};

/// Most products that a sum of int32 holds, whatever their factors are.
constexpr int64_t kMostProducts = 43800;

/// Errors: InvalidArgument for offsets and bounds that are not those of int8.
Error read_epilogue(Context& context, int64_t input_offset, int64_t output_offset, int64_t low,
                    int64_t high, Layer& layer);

/// Takes the constants of a layer with `channels` outputs. Errors: InvalidArgument.
Error read_constants(Context& context, const Tensor& weight, const std::optional<Tensor>& bias,
                     const Tensor& multipliers, const Tensor& shifts, int channels, Layer& layer);

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_IMAGE_H_
