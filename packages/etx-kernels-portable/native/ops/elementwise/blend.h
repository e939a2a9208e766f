// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_BLEND_H_
#define ETX_PORTABLE_BLEND_H_

#include "core/map.h"

namespace etx::portable {

/// out = mask ? a : b. Bits are moved, whatever they mean.
/// Errors: InvalidArgument for a mask that is not bool or uint8, and those of `map`.
Error blend(Context& context, const Tensor& mask, const Operand& a, const Operand& b,
            const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_BLEND_H_
