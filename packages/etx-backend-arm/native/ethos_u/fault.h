// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ETHOS_U_FAULT_H_
#define ETX_ETHOS_U_FAULT_H_

#include <cstdint>

namespace etx::npu {

/// Why a command stream cannot go on: a literal, null where nothing is wrong.
using Fault = const char*;

#define NPU_TRY(expression)                               \
  do {                                                    \
    if (const Fault fault_ = (expression)) return fault_; \
  } while (false)

}  // namespace etx::npu

#endif  // ETX_ETHOS_U_FAULT_H_
