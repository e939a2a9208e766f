// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_SWEEP_H_
#define ETX_PORTABLE_CONV_SWEEP_H_

#include "ops/conv/conv_shape.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

/// Float32 convolution of row-major operands as matrix products of the weight, read as stored, and
/// the padded planes of the input, addressed through an index. `bias` may be null.
Error sweep_convolution(Context& context, const ConvShape& shape, const float* input,
                        const float* weight, const float* bias, float* out);

/// The same for a weight in bfloat16 whose channels of the input lie last, (O, taps, I), behind
/// which a zero makes their number even where it is of pairs. Not transposed.
Error sweep_narrow(Context& context, const ConvShape& shape, const float* input, const Rows& weight,
                   const float* bias, float* out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_SWEEP_H_
