// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ETHOS_U_BACKEND_H_
#define ETX_ETHOS_U_BACKEND_H_

#include <etx/abi.h>

namespace etx::npu {

/// `EthosUBackend`: reads a blob in place, lends it scratch for the time of an execution, copies
/// inputs and outputs, and leaves the commands to the hook (hook.h).
extern const etx_backend kBackend;

}  // namespace etx::npu

#endif  // ETX_ETHOS_U_BACKEND_H_
