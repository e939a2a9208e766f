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
  X(pointwise) \
  X(div) \
  X(softmax) \
  X(transpose) \
  X(batch_matmul) \
  X(transpose_conv2d)
#endif
// clang-format on

namespace etx::cortex_m {

/// Whether a build has the operator: one of ETX_CORTEX_M_OPERATORS, which has a comma before and
/// after each name.
constexpr bool is_selected([[maybe_unused]] const char* name) {
#if defined(ETX_CORTEX_M_OPERATORS)
  for (const char* at = ETX_CORTEX_M_OPERATORS; *at != '\0'; ++at) {
    int i = 0;
    while (name[i] != '\0' && at[i + 1] == name[i]) ++i;
    if (*at == ',' && name[i] == '\0' && at[i + 1] == ',') return true;
  }
  return false;
#else
  return true;
#endif
}

constexpr etx_kernel kNoKernel = {"", nullptr, "", 0};

/// ETX_KERNEL, or an empty row, so that a linker drops the kernel.
#define ETX_CORTEX_M_KERNEL(name, ...) \
  (is_selected(name) ? ETX_KERNEL(name, __VA_ARGS__) : kNoKernel)

#define ETX_FAMILY(name) extern const etx_kernel_table name##_kernels;
ETX_FAMILIES(ETX_FAMILY)
#undef ETX_FAMILY
}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_FAMILIES_H_
