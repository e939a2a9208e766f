// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/window_shape.h"

#include "core/checked.h"
#include "core/shape.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

constexpr int64_t kLargest = INT32_MAX;

Error read_pair(Context& context, IntList list, int64_t lowest, int64_t* pair) {
  ETX_CHECK(context, list.size() == 2 || list.size() == 0, InvalidArgument,
            "kernel_size, stride, dilation and spacing must have 2 items");
  for (size_t i = 0; i < 2; ++i) {
    pair[i] = list.size() == 0 ? 1 : list[i];
    ETX_CHECK(context, pair[i] >= lowest && pair[i] <= kLargest, InvalidArgument,
              "kernel_size, stride, dilation and spacing must be from 1 to 2147483647");
  }
  return Error::Ok;
}

}  // namespace

Error read_window(Context& context, const Tensor& input, const WindowLists& lists, Window& window) {
  ETX_CHECK(context, input.dim() == 4, InvalidArgument, "input must be (N, H, W, C)");
  ETX_TRY(read_pair(context, lists.kernel_size, 1, window.kernel));
  ETX_TRY(read_pair(context, lists.stride, 1, window.stride));
  ETX_TRY(read_pair(context, lists.dilation, 1, window.dilation));
  ETX_TRY(read_pair(context, lists.spacing, 1, window.spacing));
  ETX_CHECK(context, lists.padding.size() == 4, InvalidArgument,
            "padding must have 4 items: top, left, bottom, right");
  window.pixel = window.channels = input.size(3);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t before = lists.padding[i], after = lists.padding[i + 2];
    ETX_CHECK(context, before >= 0 && before <= kLargest && after >= 0 && after <= kLargest,
              InvalidArgument, "padding must be from 0 to 2147483647");
    window.before[i] = before;
    window.in[i] = input.size(static_cast<ssize_t>(i) + 1);
    const Checked reach = Checked(window.dilation[i]) * (window.kernel[i] - 1) + 1;
    const Checked have =
        (window.in[i] == 0 ? Checked(0) : Checked(window.in[i] - 1) * window.spacing[i] + 1) +
        before + after;
    const Checked room = have - reach;
    ETX_CHECK(context, reach.is_within(1, kLargest) && room.is_within(0, kLargest * 4),
              InvalidArgument, "the window must not be larger than the padded input");
    window.out[i] = room.value_or(0) / window.stride[i] + 1;
  }
  return Error::Ok;
}

Error resize_window_out(Context& context, const Tensor& input, const Window& window,
                        int64_t channels, const Tensor& out) {
  ETX_CHECK(context, input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  Shape shape;
  shape.push(input.size(0));
  shape.push(window.out[0]);
  shape.push(window.out[1]);
  shape.push(channels);
  return set_sizes(context, {&input, 1}, out, shape);
}

}  // namespace etx::portable
