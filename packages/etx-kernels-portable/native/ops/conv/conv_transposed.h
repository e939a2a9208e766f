// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_TRANSPOSED_H_
#define ETX_PORTABLE_CONV_TRANSPOSED_H_

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// True for transposed convolutions of so few points that a sweep would mostly gather weights.
bool is_transposed_by_channels(const ConvShape& shape);

/// Such a float32 convolution: a product gives what each point adds, channels side by side.
/// `bias` may be null.
Error convolve_transposed_by_channels(Context& context, const ConvShape& shape, const float* input,
                                      const float* weight, const float* bias, float* out);

/// True for transposed convolutions to so few channels that a sweep would mostly copy the input.
bool is_transposed_by_taps(const ConvShape& shape);

/// Such a float32 convolution: a product gives what each tap adds. `bias` may be null.
Error convolve_transposed_by_taps(Context& context, const ConvShape& shape, const float* input,
                                  const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_TRANSPOSED_H_
