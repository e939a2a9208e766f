// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_DEPTHWISE_H_
#define ETX_PORTABLE_CONV_DEPTHWISE_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// Float32 convolution of row-major operands whose groups have a single input channel. `bias` may
/// be null. Not transposed.
Error depthwise_convolution(Context& context, const ConvShape& shape, const float* input,
                            const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_DEPTHWISE_H_
