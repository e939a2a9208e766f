// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/conv_layer.h"

#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

/// A window of one point that moves by one: rows are points of the input as they lie.
bool is_pointwise(const Window& w) {
  bool simple = w.pixel == w.channels;
  for (int i = 0; i < 2; ++i) {
    simple &= w.kernel[i] == 1 && w.stride[i] == 1 && w.before[i] == 0 && w.spacing[i] == 1 &&
              w.out[i] == w.in[i];
  }
  return simple;
}

}  // namespace

Error read_conv(Context& context, const ConvArguments& a, const Tensor& out, Window& window,
                Layer& layer) {
  Product& p = layer.product;
  const int64_t channels = a.weight_sums.numel();
  ETX_TRY(check_int8(context, a.input, "input must be contiguous int8"));
  ETX_TRY(read_window(context, a.input, a.lists, window));
  ETX_CHECK(context,
            a.groups >= 1 && a.groups <= INT32_MAX && window.pixel % a.groups == 0 &&
                channels % a.groups == 0,
            InvalidArgument, "groups must be positive and divide input and output channels");
  // Groups of a few channels may lie in one block: then that is a wider group, zeros between them.
  const int64_t groups = a.weight.dim() == 4 ? min(a.groups, max<int64_t>(a.weight.size(0), 1)) : 1;
  ETX_CHECK(context, a.groups % groups == 0, InvalidArgument,
            "weight must have as many blocks for each group, or groups for each block");
  window.channels = window.pixel / groups;
  p.columns = channels / groups;
  const Checked depth = Checked(window.kernel[0]) * window.kernel[1] * window.channels;
  ETX_CHECK(context, depth.is_within(0, INT32_MAX), InvalidArgument,
            "the window must have less than 2^31 numbers");
  layer.rows.depth = depth.value_or(0);
  layer.groups = groups;
  ETX_TRY(check_packed(context, a.weight, ScalarType::Char, groups, p.columns, layer.rows.depth,
                       kBlockDepth));
  ETX_TRY(resize_window_out(context, a.input, window, channels, out));
  if (context.is_loading()) return Error::Ok;
  layer.num_rows = out.numel() == 0 ? 0 : out.numel() / out.size(3);
  layer.rows.x = a.input.const_data_ptr<int8_t>();
  layer.rows.end = layer.rows.x + a.input.numel();
  layer.rows.stride = window.pixel;
  layer.rows.window = is_pointwise(window) ? nullptr : &window;
  p.steps = a.weight.size(1);
  p.end = divide_up(p.columns, kBlockColumns);
  p.weight = a.weight.const_data_ptr<int8_t>();
  layer.weight_step = p.end * p.steps * kBlockBytes;
  return Error::Ok;
}

}  // namespace etx::portable
