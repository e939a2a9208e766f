// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_SHAPE_H_
#define ETX_PORTABLE_CONV_SHAPE_H_

#include <utility>

#include <etx/kernel.h>

namespace etx::portable {

/// The arguments of a convolution; one- and two-dimensional ones have leading axes of size 1.
struct ConvShape {
  static constexpr int kAxes = 3;

  bool transposed = false;
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  ///< Of one group.
  int64_t in[kAxes] = {1, 1, 1}, out[kAxes] = {1, 1, 1}, kernel[kAxes] = {1, 1, 1};
  int64_t stride[kAxes] = {1, 1, 1}, padding[kAxes] = {0, 0, 0}, dilation[kAxes] = {1, 1, 1};

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool is_empty() const { return batch == 0 || out_channels == 0 || out_size() == 0; }
  /// A matrix product of the weight and the input as it lies.
  bool is_pointwise() const;
  void swap_axes(int a, int b) {
    for (int64_t* const each : {in, out, kernel, stride, padding, dilation}) {
      std::swap(each[a], each[b]);
    }
  }
};

/// Checks the arguments of `aten::convolution` and sets `shape`.
Error read_conv_shape(Context& context, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias, IntList stride, IntList padding,
                      IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                      ConvShape& shape);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_SHAPE_H_
