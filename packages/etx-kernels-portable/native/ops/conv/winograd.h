// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_WINOGRAD_H_
#define ETX_PORTABLE_WINOGRAD_H_

#include <etx/result.h>

#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// True for a convolution of 3 x 3 taps, one apart, which Winograd's products make faster.
bool suits_winograd(const Context& context, const ConvShape& shape);

/// Such a convolution by tiles of 2 x 2 outputs: 16 products of a fourth of the columns, instead of
/// 36. `bias` may be null. False, with nothing said of `out`, where a result is not finite: an
/// infinity makes NaN of all outputs of a tile.
Result<bool> convolve_winograd(Context& context, const ConvShape& shape, const float* input,
                               const float* weight, const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_WINOGRAD_H_
