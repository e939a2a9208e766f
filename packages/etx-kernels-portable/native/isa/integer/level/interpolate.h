// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_INTERPOLATE_H_
#define ETX_PORTABLE_INTEGER_INTERPOLATE_H_

/// Loops that put points between those of an image: sums of at most 255 * kOne * kOne, exact.

#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

void between_rows(const int8_t* a, const int8_t* b, int32_t weight, int32_t zero, int32_t* line,
                  int64_t n) {
  const VecI up = splat(kOne - weight), down = splat(weight), less = splat(kOne * zero);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(line + i, widen_bytes(a + i) * up + widen_bytes(b + i) * down - less);
  }
  for (; i < n; ++i, stay_scalar()) {
    line[i] = (kOne - weight) * a[i] + weight * b[i] - kOne * zero;
  }
}

/// Sums of narrow points are collected until there is a vector of them.
void between_narrow_points(const int32_t* line, const Between* points, int64_t num_points,
                           int64_t channels, const Requantize& to_bytes, int8_t* y) {
  int32_t sums[kLanes];
  int64_t filled = 0;
  for (int64_t i = 0; i < num_points; ++i) {
    const int32_t* const a = line + points[i].first * channels;
    const int32_t* const b = points[i].weight == 0 ? a : a + channels;
    for (int64_t c = 0; c < channels; ++c) {
      sums[filled++] = (kOne - points[i].weight) * a[c] + points[i].weight * b[c];
      if (filled < kLanes) continue;
      store_bytes(y, to_bytes.from_sums(load_ints(sums)));
      y += kLanes, filled = 0;
    }
  }
  for (int64_t i = 0; i < filled; ++i) {
    store_bytes_part(y + i, to_bytes.from_sums(splat(sums[i])), 1);
  }
}

void between_points(const int32_t* line, const Between* points, int64_t num_points,
                    int64_t channels, float scale, const Bounds& bounds, int8_t* y) {
  const Requantize to_bytes(scale, bounds);
  if (channels < kLanes) {
    between_narrow_points(line, points, num_points, channels, to_bytes, y);
    return;
  }
  for (int64_t i = 0; i < num_points; ++i, y += channels) {
    const int32_t* const a = line + points[i].first * channels;
    const int32_t* const b = points[i].weight == 0 ? a : a + channels;
    const VecI left = splat(kOne - points[i].weight), right = splat(points[i].weight);
    const auto sum = [&](int64_t c) { return load_ints(a + c) * left + load_ints(b + c) * right; };
    // The last vector may begin inside of the one before.
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t from = c + kLanes <= channels ? c : channels - kLanes;
      store_bytes(y + from, to_bytes.from_sums(sum(from)));
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_INTERPOLATE_H_
