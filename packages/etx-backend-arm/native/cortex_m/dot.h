// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_DOT_H_
#define ETX_CORTEX_M_DOT_H_

#include <cstdint>

namespace etx::cortex_m {

/// sums[i] += sum of (x[k] + offset) * weight[i * row + k], for k below `count`.
template <int channels>
inline void add_products(const int8_t* x, const int8_t* weight, int32_t row, int32_t count,
                         int32_t offset, int32_t* sums) {
  int32_t sum[channels];
  for (int i = 0; i < channels; ++i) sum[i] = sums[i];
  for (int32_t k = 0; k < count; ++k) {
    const int32_t value = x[k] + offset;
    for (int i = 0; i < channels; ++i) sum[i] += value * weight[i * row + k];
  }
  for (int i = 0; i < channels; ++i) sums[i] = sum[i];
}

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_DOT_H_
