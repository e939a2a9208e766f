// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_OPERANDS_H_
#define ETX_CORTEX_M_OPERANDS_H_

#include <etx/kernel.h>

#include "cortex_m/fixed_point.h"

namespace etx::cortex_m {

/// Whether both have the same sizes in the same order of memory.
inline bool is_like(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (ssize_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != b.size(i) || (a.size(i) != 1 && a.stride(i) != b.stride(i))) return false;
  }
  return true;
}

inline bool is_int8(const Tensor& tensor) { return tensor.scalar_type() == ScalarType::Char; }

inline bool is_offset(int64_t number) { return number >= -255 && number <= 255; }

inline bool is_factor(int64_t multiplier, int64_t shift) {
  return multiplier >= INT32_MIN && multiplier <= INT32_MAX && shift >= -31 && shift <= 31;
}

inline Factor factor(int64_t multiplier, int64_t shift) {
  return {static_cast<int32_t>(multiplier), static_cast<int32_t>(shift)};
}

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_OPERANDS_H_
