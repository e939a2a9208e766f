// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_SCALING_H_
#define ETX_NPU_SCALING_H_

#include <cstdint>

#include "ethos_u/fault.h"

namespace etx::npu {

constexpr uint32_t kDoubleRound = 0, kTruncate = 1, kNatural = 2;

/// `value * scale / 2**shift` in 64 bits: rounded half up, twice, or towards zero.
Fault scaled(int64_t value, uint64_t scale, uint32_t shift, uint32_t rounding, int64_t* result);

}  // namespace etx::npu

#endif  // ETX_NPU_SCALING_H_
