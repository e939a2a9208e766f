// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_few_points.h"

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/conv/conv_reach.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

/// Copies the window of output `point`: `taps` floats of each channel, zeros where it is outside.
void gather_window(const ConvShape& s, int64_t point, const float* input, float* to) {
  const int64_t at[ConvShape::kAxes] = {point / s.out[2] / s.out[1], point / s.out[2] % s.out[1],
                                        point % s.out[2]};
  int64_t first[ConvShape::kAxes];
  for (int a = 0; a < ConvShape::kAxes; ++a) first[a] = at[a] * s.stride[a] - s.padding[a];
  const int64_t size = s.in_size();
  const bool inside = first[0] >= 0 && first[1] >= 0 && first[2] >= 0;
  if (inside && s.taps() == 1 && first[0] < s.in[0] && first[1] < s.in[1] && first[2] < s.in[2]) {
    const float* const from = input + (first[0] * s.in[1] + first[1]) * s.in[2] + first[2];
    for (int64_t channel = 0; channel < s.in_channels; ++channel)
      to[channel] = from[channel * size];
    return;
  }
  int64_t left = 0, right = s.kernel[2];
  while (left < right && first[2] + left * s.dilation[2] < 0) ++left;
  while (right > left && first[2] + (right - 1) * s.dilation[2] >= s.in[2]) --right;
  for (int64_t channel = 0; channel < s.in_channels; ++channel, input += size) {
    for (int64_t kz = 0, z = first[0]; kz < s.kernel[0]; ++kz, z += s.dilation[0]) {
      for (int64_t ky = 0, y = first[1]; ky < s.kernel[1]; ++ky, y += s.dilation[1]) {
        const bool has_line = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const int64_t line = (z * s.in[1] + y) * s.in[2] + first[2];
        for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
          *to++ = has_line && kx >= left && kx < right ? input[line + kx * s.dilation[2]] : 0.0f;
        }
      }
    }
  }
}

}  // namespace

bool has_few_points(const ConvShape& s) {
  return !s.transposed && s.out_size() <= dot_rows() && s.out_channels >= isa().vector_floats &&
         s.in_channels * s.taps() >= isa().vector_floats;
}

Error convolve_few_points(Context& context, const ConvShape& s, const float* input,
                          const float* weight, const float* bias, float* out) {
  const int64_t size = s.out_size(), depth = s.in_channels * s.taps();
  constexpr int64_t kWindows = 16384;  // Floats of windows of images that share a kernel.
  const int64_t together = min(max<int64_t>(kWindows / (depth * size), 1), s.batch);
  const int64_t threads =
      useful_threads(context, Checked(s.out_channels) * depth * together * size * kReadCost);
  const Checked floats = Checked(together) * size * (Checked(depth) + s.out_channels);
  ETX_ASSIGN(float* const windows, scratch<float>(context, floats.value_or(-1),
                                                  "not enough temporary memory for windows"));
  float* const made = windows + together * size * depth;
  for (int64_t group = 0; group < s.groups; ++group) {
    const int64_t row = group * s.out_channels;
    for (int64_t image = 0; image < s.batch; image += together) {
      const int64_t points = min(together, s.batch - image) * size;
      const int64_t first = image * s.groups + group;
      for (int64_t i = 0; i < points; ++i) {
        const int64_t p = first + i / size * s.groups;
        gather_window(s, i % size, input + p * s.in_channels * s.in_size(), windows + i * depth);
      }
      Gemv d;
      d.x = windows, d.x_stride = depth, d.rows = points;
      d.w = weight + row * depth, d.w_stride = depth, d.depth = depth;
      d.bias = bias == nullptr ? nullptr : bias + row;
      d.y = made, d.y_stride = s.out_channels;
      const int64_t grain = divide_up(s.out_channels, threads);
      context.parallel_for(0, s.out_channels, grain, [&](int64_t begin, int64_t end) {
        Gemv part = d;
        part.begin = begin, part.end = end;
        isa().gemv(part);
        for (int64_t i = 0; i < points; ++i) {
          float* const to = out + (first + i / size * s.groups) * s.out_channels * size + i % size;
          for (int64_t c = begin; c < end; ++c) to[c * size] = made[i * s.out_channels + c];
        }
      });
    }
  }
  return Error::Ok;
}

}  // namespace etx::portable
