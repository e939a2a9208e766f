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
  const int64_t first = at[2] * s.stride[2] - s.padding[2], step = s.dilation[2];
  for (int64_t line = 0; line < s.in_channels * s.kernel[0] * s.kernel[1]; ++line) {
    const int64_t channel = line / s.kernel[1] / s.kernel[0];
    const int64_t z =
        at[0] * s.stride[0] - s.padding[0] + line / s.kernel[1] % s.kernel[0] * s.dilation[0];
    const int64_t y = at[1] * s.stride[1] - s.padding[1] + line % s.kernel[1] * s.dilation[1];
    const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
    const int64_t begin = ((channel * s.in[0] + z) * s.in[1] + y) * s.in[2];
    for (int64_t k = 0; k < s.kernel[2]; ++k) {
      const int64_t x = first + k * step;
      *to++ = inside && x >= 0 && x < s.in[2] ? input[begin + x] : 0.0f;
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
  const int64_t points = s.out_size(), depth = s.in_channels * s.taps();
  const int64_t threads =
      useful_threads(context, Checked(s.out_channels) * depth * points * kReadCost);
  const Checked floats = Checked(points) * (Checked(depth) + s.out_channels);
  ETX_ASSIGN(float* const windows, scratch<float>(context, floats.value_or(-1),
                                                  "not enough temporary memory for windows"));
  float* const made = windows + points * depth;
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    for (int64_t i = 0; i < points; ++i) {
      gather_window(s, i, input + p * s.in_channels * s.in_size(), windows + i * depth);
    }
    Gemv d;
    d.x = windows, d.x_stride = depth, d.rows = points;
    d.w = weight + row * depth, d.w_stride = depth, d.depth = depth;
    d.bias = bias == nullptr ? nullptr : bias + row;
    d.y = made, d.y_stride = s.out_channels;
    float* const to = out + p * s.out_channels * points;
    const int64_t grain = divide_up(s.out_channels, threads);
    context.parallel_for(0, s.out_channels, grain, [&](int64_t begin, int64_t end) {
      Gemv part = d;
      part.begin = begin, part.end = end;
      isa().gemv(part);
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t i = 0; i < points; ++i) to[c * points + i] = made[i * s.out_channels + c];
      }
    });
  }
  return Error::Ok;
}

}  // namespace etx::portable
