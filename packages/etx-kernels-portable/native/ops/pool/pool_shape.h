// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_POOL_SHAPE_H_
#define ETX_PORTABLE_POOL_SHAPE_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// The arguments of a two-dimensional pooling, as a convolution with `planes` groups would have
/// them; axis 0 is not used.
struct PoolShape {
  ConvShape window;
  int64_t planes = 0;

  /// First and last coordinate of the input that output `o` takes on `axis`, inside the input.
  int64_t begin(int axis, int64_t o) const;
  int64_t end(int axis, int64_t o) const;
};

/// Checks the arguments that poolings share and computes the output's size. `dilation` may be
/// empty, `stride` too: then it is the kernel size.
Error read_pool_shape(Context& context, const Tensor& self, IntList kernel_size, IntList stride,
                      IntList padding, IntList dilation, bool ceil_mode, PoolShape& shape);

/// Resizes `out` to the channels of `self` and the pooled size.
Error resize_pooled(Context& context, const Tensor& self, const PoolShape& shape,
                    const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_POOL_SHAPE_H_
