// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_REACH_H_
#define ETX_PORTABLE_CONV_REACH_H_

#include "core/min_max.h"
#include "core/work.h"
#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// The coarse coordinates c, from `begin` to `end`, for which c * stride + shift is a fine one.
/// Coarse are the outputs of a convolution and the inputs of a transposed one.
struct Reach {
  int64_t begin, end, stride, shift;
  Reach(const ConvShape& s, int axis, int64_t tap) {
    const int64_t coarse = s.transposed ? s.in[axis] : s.out[axis];
    const int64_t fine = s.transposed ? s.out[axis] : s.in[axis];
    stride = s.stride[axis];
    shift = tap * s.dilation[axis] - s.padding[axis];
    begin = shift >= 0 ? 0 : divide_up(-shift, stride);
    end = fine - shift <= 0 ? 0 : (fine - shift - 1) / stride + 1;
    end = min(end, coarse);
  }
  int64_t fine(int64_t c) const { return c * stride + shift; }
};

/// The three axes' reaches of one tap.
struct TapReach {
  Reach z, y, x;
  TapReach(const ConvShape& s, int64_t tap)
      : z(s, 0, tap / s.kernel[2] / s.kernel[1]),
        y(s, 1, tap / s.kernel[2] % s.kernel[1]),
        x(s, 2, tap % s.kernel[2]) {}
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_REACH_H_
