// SPDX-License-Identifier: BSD-3-Clause
#include "ops/pool/pool_shape.h"

#include "core/min_max.h"
#include "core/shape.h"
#include "core/work.h"

namespace etx::portable {
namespace {

Error read_pair(Context& context, IntList list, int64_t lowest, int64_t* axes) {
  ETX_CHECK(context, list.size() == 1 || list.size() == 2, InvalidArgument,
            "kernel_size, stride, padding and dilation must have one or two items");
  for (size_t i = 0; i < 2; ++i) {
    axes[1 + i] = list[list.size() == 1 ? 0 : i];
    ETX_CHECK(context, axes[1 + i] >= lowest && axes[1 + i] <= INT32_MAX, InvalidArgument,
              "kernel_size, stride and dilation must be positive, padding not negative");
  }
  return Error::Ok;
}

int64_t pooled_size(const ConvShape& w, int axis, bool ceil_mode) {
  const int64_t reach = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
  const int64_t room = w.in[axis] + 2 * w.padding[axis] - reach;
  if (room < 0 && !(ceil_mode && room > -w.stride[axis])) return 0;
  int64_t out = (room < 0 ? 0 : room / w.stride[axis]) + 1;
  if (ceil_mode && room > 0) {
    out = divide_up(room, w.stride[axis]) + 1;
    // A window must begin inside the input or its left padding.
    if ((out - 1) * w.stride[axis] >= w.in[axis] + w.padding[axis]) --out;
  }
  return out;
}

}  // namespace

int64_t PoolShape::begin(int axis, int64_t o) const {
  const int64_t at = o * window.stride[axis] - window.padding[axis];
  return at >= 0 ? at : at + divide_up(-at, window.dilation[axis]) * window.dilation[axis];
}

int64_t PoolShape::end(int axis, int64_t o) const {
  const int64_t at = o * window.stride[axis] - window.padding[axis];
  const int64_t last = at + window.dilation[axis] * (window.kernel[axis] - 1) + 1;
  return min(last, window.in[axis]);
}

Error read_pool_shape(Context& context, const Tensor& self, IntList kernel_size, IntList stride,
                      IntList padding, IntList dilation, bool ceil_mode, PoolShape& shape) {
  ETX_CHECK(context, self.dim() == 3 || self.dim() == 4, InvalidArgument,
            "self must have three or four dimensions");
  ConvShape& w = shape.window;
  ETX_TRY(read_pair(context, kernel_size, 1, w.kernel));
  ETX_TRY(read_pair(context, stride.empty() ? kernel_size : stride, 1, w.stride));
  ETX_TRY(read_pair(context, padding, 0, w.padding));
  if (!dilation.empty()) ETX_TRY(read_pair(context, dilation, 1, w.dilation));
  w.in_channels = w.out_channels = 1;
  w.groups = self.size(-3);
  w.batch = self.dim() == 4 ? self.size(0) : 1;
  shape.planes = w.groups * w.batch;
  for (int a = 1; a < ConvShape::kAxes; ++a) {
    ETX_CHECK(context, w.padding[a] <= w.kernel[a] / 2, InvalidArgument,
              "padding must be at most half of kernel_size");
    w.in[a] = self.size(a - ConvShape::kAxes);
    w.out[a] = pooled_size(w, a, ceil_mode);
    ETX_CHECK(context, w.in[a] >= 1 && w.out[a] >= 1, InvalidArgument,
              "self must be as large as the window");
  }
  return Error::Ok;
}

Error resize_pooled(Context& context, const Tensor& self, const PoolShape& shape,
                    const Tensor& out) {
  Shape sizes(self);
  sizes[sizes.rank() - 2] = shape.window.out[1];
  sizes[sizes.rank() - 1] = shape.window.out[2];
  return resize_out(context, out, sizes);
}

}  // namespace etx::portable
