// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WINOGRAD_H_
#define ETX_PORTABLE_LEVEL_WINOGRAD_H_

/// What becomes products and what products become, for tiles of 2 x 2 outputs of 3 x 3 taps
/// (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4.1).

#include "isa/level/transpose.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

constexpr int kFactors = 16, kTapsOfTile = 9;

/// Four points of a line: B^T d.
ETX_INLINE void mix_points(VecF (&d)[kFactors], int first, int step) {
  const VecF b = d[first + step], c = d[first + 2 * step];
  d[first] = d[first] - c;
  d[first + step] = b + c;
  d[first + 2 * step] = c - b;
  d[first + 3 * step] = b - d[first + 3 * step];
}

void tiles_of_points(const float* x, const int32_t* offset, int64_t step, int64_t channels,
                     int64_t vectors, float* to, int64_t next) {
  for (int64_t c = 0; c < channels; ++c, x += step, to += 2 * kLanes) {
    for (int64_t v = 0; v < vectors; ++v) {
      VecF d[kFactors];
      ETX_UNROLL
      for (int i = 0; i < kFactors; ++i) d[i] = load(x + offset[i] + v * kLanes);
      ETX_UNROLL
      for (int i = 0; i < 4; ++i) mix_points(d, 4 * i, 1);
      ETX_UNROLL
      for (int i = 0; i < 4; ++i) mix_points(d, i, 4);
      ETX_UNROLL
      for (int i = 0; i < kFactors; ++i) store(to + i * next + v * kLanes, d[i]);
    }
  }
}

/// Three taps of a line: G g.
ETX_INLINE void mix_taps(VecF a, VecF b, VecF c, VecF* to, int step) {
  const VecF half = splat(0.5f), ends = (a + c) * half, middle = b * half;
  to[0] = a;
  to[step] = ends + middle;
  to[2 * step] = ends - middle;
  to[3 * step] = c;
}

void tiles_of_taps(const float* w, int64_t kernels, float* to, int64_t next) {
  float taps[kTapsOfTile * kLanes] = {};
  for (int64_t k = 0; k < kernels; k += kLanes, w += kTapsOfTile * kLanes, to += kLanes) {
    const int64_t count = kernels - k < kLanes ? kernels - k : kLanes;
    store_transposed(w, kTapsOfTile, count, kTapsOfTile, taps, kLanes);
    VecF g[kTapsOfTile], lines[12], all[kFactors];
    ETX_UNROLL
    for (int i = 0; i < kTapsOfTile; ++i) g[i] = load(taps + i * kLanes);
    ETX_UNROLL
    for (int i = 0; i < 3; ++i) mix_taps(g[3 * i], g[3 * i + 1], g[3 * i + 2], lines + 4 * i, 1);
    ETX_UNROLL
    for (int i = 0; i < 4; ++i) mix_taps(lines[i], lines[4 + i], lines[8 + i], all + i, 4);
    ETX_UNROLL
    for (int i = 0; i < kFactors; ++i) store(to + i * next, all[i]);
  }
}

bool outputs_of_tiles(const float* sums, int64_t next, int64_t rows, int64_t vectors,
                      const float* bias, float* y, int64_t row_step, int64_t phase_step) {
  VecF none = splat(0.0f);
  for (int64_t r = 0; r < rows; ++r, sums += 2 * kLanes, y += row_step) {
    const VecF added = splat(bias == nullptr ? 0.0f : bias[r]);
    for (int64_t v = 0; v < vectors; ++v) {
      VecF m[kFactors];
      ETX_UNROLL
      for (int i = 0; i < kFactors; ++i) m[i] = load(sums + i * next + v * kLanes);
      VecF lines[2][4];
      ETX_UNROLL
      for (int j = 0; j < 4; ++j) {
        lines[0][j] = m[j] + m[4 + j] + m[8 + j];
        lines[1][j] = m[4 + j] - m[8 + j] - m[12 + j];
      }
      ETX_UNROLL
      for (int i = 0; i < 2; ++i) {
        const VecF* const l = lines[i];
        const VecF even = l[0] + l[1] + l[2] + added, odd = l[1] - l[2] - l[3] + added;
        store(y + 2 * i * phase_step + v * kLanes, even);
        store(y + (2 * i + 1) * phase_step + v * kLanes, odd);
        none = none + (even - even) + (odd - odd);  // NaN where one is not finite.
      }
    }
  }
  float lanes[kLanes];
  store(lanes, none);
  bool finite = true;
  for (const float lane : lanes) finite &= lane == 0.0f;
  return finite;
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_WINOGRAD_H_
