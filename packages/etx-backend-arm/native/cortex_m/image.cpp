// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/image.h"

namespace etx::cortex_m {
namespace {

constexpr int kPlaces[2][4] = {{0, 2, 3, 1}, {0, 1, 2, 3}};

bool has_channels_last(const Tensor& tensor, Order order) {
  const int* const place = kPlaces[static_cast<int>(order)];
  int64_t distance = 1;
  for (int i = 3; i >= 0; --i) {
    const ssize_t size = tensor.size(place[i]);
    if (size != 1 && tensor.stride(place[i]) != distance) return false;
    distance *= size;
  }
  return true;
}

bool read_pair(IntList list, int64_t least, int64_t fallback, int32_t* pair) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t value = list.size() == 0 ? fallback : list[list.size() == 1 ? 0 : i];
    if (list.size() > 2 || value < least || value > INT16_MAX) return false;
    pair[i] = static_cast<int32_t>(value);
  }
  return true;
}

bool is_vector(const Tensor& tensor, int32_t count) {
  return tensor.scalar_type() == ScalarType::Int && tensor.numel() == count &&
         tensor.is_contiguous();
}

}  // namespace

Error read_image(Context& context, const Tensor& tensor, Order order, Image& image) {
  ETX_CHECK(context, tensor.scalar_type() == ScalarType::Char && tensor.dim() == 4, InvalidArgument,
            "input and out must be int8 of rank 4");
  int32_t sizes[4];
  for (int i = 0; i < 4; ++i) {
    const ssize_t size = tensor.size(kPlaces[static_cast<int>(order)][i]);
    ETX_CHECK(context, i == 0 || size <= (1 << 24), NotSupported, "a size is above 2^24");
    sizes[i] = static_cast<int32_t>(size);
  }
  ETX_CHECK(context, tensor.numel() == 0 || has_channels_last(tensor, order), InvalidArgument,
            "channels of input and out must be next to each other in memory (channels last)");
  image = {sizes[0], sizes[1], sizes[2], sizes[3]};
  return Error::Ok;
}

Error resize_image(Context& context, const Image& image, Order order, Tensor& out) {
  const int32_t from[4] = {image.count, image.height, image.width, image.channels};
  int64_t sizes[4];
  for (int i = 0; i < 4; ++i) sizes[kPlaces[static_cast<int>(order)][i]] = from[i];
  ETX_CHECK(context, out.dim() == 4 && out.resize(Span<const int64_t>(sizes, 4)) == Error::Ok,
            InvalidArgument, "out must have the sizes of the result");
  Image found;
  return read_image(context, out, order, found);
}

Error read_window(Context& context, IntList kernel, IntList stride, IntList padding,
                  IntList dilation, Window& window) {
  const bool ok = kernel.size() != 0 && read_pair(kernel, 1, 1, window.kernel) &&
                  read_pair(stride.size() == 0 ? kernel : stride, 1, 1, window.stride) &&
                  read_pair(padding, 0, 0, window.padding) &&
                  read_pair(dilation, 1, 1, window.dilation);
  ETX_CHECK(context, ok, InvalidArgument,
            "kernel, stride, padding and dilation must be one or two numbers below 32768");
  return Error::Ok;
}

int output_size(const Window& w, int direction, int input, bool rounds_up) {
  const int32_t padding = w.padding[direction], stride = w.stride[direction];
  const int32_t room = input + 2 * padding - w.dilation[direction] * (w.kernel[direction] - 1) - 1;
  if (room < 0) return -1;
  int32_t size = (room + (rounds_up ? stride - 1 : 0)) / stride + 1;
  if (rounds_up && (size - 1) * stride >= input + padding) --size;
  return size;
}

Error read_epilogue(Context& context, int64_t input_offset, int64_t output_offset, int64_t low,
                    int64_t high, Layer& layer) {
  ETX_CHECK(context, input_offset >= -127 && input_offset <= 128, InvalidArgument,
            "input_offset must be within -127 and 128");
  ETX_CHECK(context, output_offset >= -255 && output_offset <= 255, InvalidArgument,
            "output_offset must be within -255 and 255");
  ETX_CHECK(context, low >= -128 && high <= 127 && low <= high, InvalidArgument,
            "activation_min and activation_max must be a range of int8");
  layer.input_offset = static_cast<int32_t>(input_offset);
  layer.epilogue = {static_cast<int32_t>(output_offset), static_cast<int32_t>(low),
                    static_cast<int32_t>(high)};
  return Error::Ok;
}

Error read_constants(Context& context, const Tensor& weight, const std::optional<Tensor>& bias,
                     const Tensor& multipliers, const Tensor& shifts, int channels, Layer& layer) {
  ETX_CHECK(context,
            weight.scalar_type() == ScalarType::Char && weight.dim() == 4 && weight.is_contiguous(),
            InvalidArgument, "weight must be contiguous int8 of rank 4");
  ETX_CHECK(context, !bias || is_vector(*bias, channels), InvalidArgument,
            "bias must be int32, one for each channel of out");
  ETX_CHECK(context, is_vector(multipliers, channels) && is_vector(shifts, channels),
            InvalidArgument,
            "requantize_multipliers and requantize_shifts must be int32, one each");
  layer.weight = weight.const_data_ptr<int8_t>();
  layer.bias = bias ? bias->const_data_ptr<int32_t>() : nullptr;
  layer.multipliers = multipliers.const_data_ptr<int32_t>();
  layer.shifts = shifts.const_data_ptr<int32_t>();
  return Error::Ok;
}

}  // namespace etx::cortex_m
