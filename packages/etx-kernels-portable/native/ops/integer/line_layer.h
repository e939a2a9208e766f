// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LINE_LAYER_H_
#define ETX_PORTABLE_LINE_LAYER_H_

#include "ops/integer/layer.h"

namespace etx::portable {

/// Windows of a convolution to int8 that a level which reads taps multiplies where they lie, in
/// copied lines of the input: each number is copied once, not for each point of the kernel.
bool reads_lines(const Layer& layer);

/// `run_layer` of such windows. Errors: MemoryAllocationFailed.
Error run_lines(Context& context, const Layer& layer);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_LINE_LAYER_H_
