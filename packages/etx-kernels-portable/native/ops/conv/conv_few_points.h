// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_FEW_POINTS_H_
#define ETX_PORTABLE_CONV_FEW_POINTS_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// True where so few points come out that their windows are gathered and each row of the weight is
/// read once for all of them.
bool has_few_points(const ConvShape& shape);

/// Such a float32 convolution; `bias` may be null.
Error convolve_few_points(Context& context, const ConvShape& shape, const float* input,
                          const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_FEW_POINTS_H_
