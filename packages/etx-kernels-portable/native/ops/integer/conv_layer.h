// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_LAYER_H_
#define ETX_PORTABLE_CONV_LAYER_H_

#include <etx/kernel.h>

#include "ops/integer/layer.h"
#include "ops/integer/window_shape.h"

namespace etx::portable {

/// What convolutions of int8 images (N, H, W, C) have in common.
struct ConvArguments {
  const Tensor& input;
  const Tensor& weight;
  const Tensor& weight_sums;  ///< One for each output channel.
  WindowLists lists;
  int64_t groups;
};

/// Checks the arguments, makes `out` (N, OH, OW, channels) and sets `window` but what fills it, and
/// of `layer` rows, groups and weight: that of a window of one point has rows without a window, and
/// groups that share blocks of the weight are one.
/// Errors: InvalidArgument.
Error read_conv(Context& context, const ConvArguments& arguments, const Tensor& out, Window& window,
                Layer& layer);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_LAYER_H_
