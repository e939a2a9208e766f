// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_TAPS_H_
#define ETX_PORTABLE_LEVEL_TAPS_H_

/// The inner loop of depthwise convolutions.

#include <etx/portable/simd.h>

namespace etx::portable {
namespace {

template <int V>
inline void taps_at(const float* x, const int32_t* offset, const float* w, int64_t taps,
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

void taps(const float* x, const int32_t* offset, const float* w, int64_t taps, float bias,
          float* y, int64_t n) {
  constexpr int V = 6;
  int64_t q = 0;
  for (; q + V * kLanes <= n; q += V * kLanes) taps_at<V>(x + q, offset, w, taps, bias, y + q);
  for (; q + 2 * kLanes <= n; q += 2 * kLanes) taps_at<2>(x + q, offset, w, taps, bias, y + q);
  for (; q < n; q += kLanes) taps_at<1>(x + q, offset, w, taps, bias, y + q);
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_TAPS_H_
