// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_FAMILIES_H_
#define ETX_CORTEX_M_FAMILIES_H_

#include <etx/kernel.h>

/// Every family of cortex_m:: operators: `X(name)` stands for a table that `name.cpp` defines. A
/// build may define a shorter list (ETX_CORTEX_M_FAMILIES in CMake).
// clang-format off
#if !defined(ETX_FAMILIES)
#define ETX_FAMILIES(X) \
  X(quantize) \
  X(conv2d) \
  X(depthwise_conv2d) \
  X(linear) \
  X(avg_pool2d) \
  X(max_pool2d) \
  X(pad) \
  X(pointwise)
#endif
// clang-format on

namespace etx::cortex_m {
#define ETX_FAMILY(name) extern const etx_kernel_table name##_kernels;
ETX_FAMILIES(ETX_FAMILY)
#undef ETX_FAMILY
}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_FAMILIES_H_
