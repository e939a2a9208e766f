// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_WIDEN_H_
#define ETX_PORTABLE_WIDEN_H_

#include <cstdint>

namespace etx::portable {

/// What `isa()` has of this name, for those who have `integer()`.
void from_bfloat16(const uint16_t* from, float* to, int64_t n);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_WIDEN_H_
