// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_BY_TAPS_H_
#define ETX_PORTABLE_CONV_BY_TAPS_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// True where most taps of most outputs lie outside of the image.
bool has_mostly_dead_taps(const ConvShape& s);

/// Such a convolution: a product of each tap and the points that it reaches, added to their
/// outputs. `bias` may be null.
Error convolve_by_taps(Context& context, const ConvShape& s, const float* input,
                       const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_BY_TAPS_H_
