// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_PRIMS_H_
#define ETX_ATEN_PRIMS_H_

#include <etx/abi.h>

namespace etx::aten {

/// What programs call that torch's dispatcher does not have, or that writes number slots.
extern const etx_kernel_table prim_kernels;

}  // namespace etx::aten

#endif  // ETX_ATEN_PRIMS_H_
