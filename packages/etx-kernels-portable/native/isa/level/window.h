// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WINDOW_H_
#define ETX_PORTABLE_LEVEL_WINDOW_H_

/// The inner loops of depthwise convolutions and of pooling.

#include "isa/simd.h"

namespace etx::portable {
namespace {

template <int V>
inline void window_at(const float* x, const int32_t* offset, const float* w, int64_t taps,
                      float bias, float* y) {
  VecF acc[V];
  ETX_UNROLL
  for (int v = 0; v < V; ++v) acc[v] = splat(bias);
  for (int64_t t = 0; t < taps; ++t) {
    const float* const from = x + offset[t];
    const float s = w[t];
    ETX_UNROLL
    for (int v = 0; v < V; ++v) acc[v] = acc[v] + load(from + v * kLanes) * s;
  }
  ETX_UNROLL
  for (int v = 0; v < V; ++v) store(y + v * kLanes, acc[v]);
}

void window(const float* x, const int32_t* offset, const float* w, int64_t taps, float bias,
            float* y, int64_t n) {
  int64_t q = 0;
  for (; q + 6 * kLanes <= n; q += 6 * kLanes) window_at<6>(x + q, offset, w, taps, bias, y + q);
  switch ((n - q + kLanes - 1) / kLanes) {
    case 6: return window_at<6>(x + q, offset, w, taps, bias, y + q);
    case 5: return window_at<5>(x + q, offset, w, taps, bias, y + q);
    case 4: return window_at<4>(x + q, offset, w, taps, bias, y + q);
    case 3: return window_at<3>(x + q, offset, w, taps, bias, y + q);
    case 2: return window_at<2>(x + q, offset, w, taps, bias, y + q);
    case 1: return window_at<1>(x + q, offset, w, taps, bias, y + q);
    default: return;
  }
}

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
