// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_FLOAT_H_
#define ETX_PORTABLE_CONV_FLOAT_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// A float32 convolution, by what suits its shape. `bias` may be null.
Error convolve_floats(Context& context, const ConvShape& shape, const float* input,
                      const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_FLOAT_H_
