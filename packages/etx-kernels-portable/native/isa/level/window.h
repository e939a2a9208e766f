// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WINDOW_H_
#define ETX_PORTABLE_LEVEL_WINDOW_H_

/// The inner loop of pooling.

#include "isa/simd.h"

namespace etx::portable {
namespace {

void max_window(const float* x, const int32_t* offset, int64_t taps, float* y, int32_t* tap,
                int64_t n) {
  for (int64_t q = 0; q < n; q += kLanes) {
    VecF best = load(x + q + offset[0]);
    VecI which = splat(int32_t{0});
    for (int64_t t = 1; t < taps; ++t) {
      const VecF v = load(x + q + offset[t]);
      const auto better = (v > best) | (v != v);
      best = better ? v : best;
      which = better ? splat(static_cast<int32_t>(t)) : which;
    }
    store(y + q, best);
    store(tap + q, which);
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_WINDOW_H_
