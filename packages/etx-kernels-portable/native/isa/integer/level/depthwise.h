// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_DEPTHWISE_H_
#define ETX_PORTABLE_INTEGER_DEPTHWISE_H_

/// Convolutions in which each channel has a filter of its own.

#include "isa/integer/level/dot.h"
#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

void depthwise(const DepthwiseRow& d) {
  constexpr int64_t kWidth = 64;
  const Requantize to_bytes(d.bounds);
  for (int64_t c = 0; c < d.channels; c += kWidth) {
    const int64_t n = d.channels - c < kWidth ? d.channels - c : kWidth;
    for (int64_t p = 0; p < d.points; ++p) {
      int32_t sums[kWidth] = {};
      for (int64_t i = 0; i < n; ++i) sums[i] = d.start[c + i];
      const int8_t* w = d.weight + c;
      for (int64_t ky = 0; ky < d.kernel[0]; ++ky) {
        const int8_t* x = d.lines[ky] + p * d.step + c;
        for (int64_t kx = 0; kx < d.kernel[1]; ++kx, x += d.dilation, w += d.channels) {
          for (int64_t i = 0; i < n; ++i) sums[i] += x[i] * w[i];
        }
      }
      int8_t* const y = d.out + p * d.channels + c;
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        store_bytes(y + i, to_bytes.from_sums(load_ints(sums + i), load(d.scale + c + i)));
      }
      for (; i < n; ++i) {
        const VecF scale = splat(d.scale[c + i]);
        store_bytes_part(y + i, to_bytes.from_sums(splat(sums[i]), scale), 1);
      }
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_DEPTHWISE_H_
