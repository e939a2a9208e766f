// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_float.h"

#include "core/scratch.h"
#include "isa/isa.h"
#include "ops/conv/conv_by_taps.h"
#include "ops/conv/conv_depthwise.h"
#include "ops/conv/conv_few_points.h"
#include "ops/conv/conv_sweep.h"
#include "ops/conv/conv_transposed.h"
#include "ops/conv/conv_windows.h"
#include "ops/conv/padded_planes.h"
#include "ops/conv/winograd.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

/// True where a sweep would spend most of its time between the lines of outputs, or most of its
/// memory on padding.
bool is_mostly_border(const ConvShape& s) {
  constexpr int64_t kMostWaste = 4, kSmall = 256, kFew = 16384;
  if (s.transposed || s.in_channels == 1 || s.out_channels < 4) return false;
  const PaddedPlanes planes(s);
  const int64_t each = s.in_channels * (s.in_size() + s.out_channels * s.taps());
  const int64_t tensors = each + s.out_channels * s.out_size();
  return planes.plane() > kMostWaste * s.out_size() + kSmall ||
         s.in_channels * planes.channel() > 2 * tensors + kFew / s.groups;
}

/// A convolution of one tap whose outputs are some of the inputs: these side by side, then
/// products.
bool is_strided_pointwise(const ConvShape& s) {
  bool inside = !s.transposed && s.taps() == 1 && s.in_channels != 1;
  for (int a = 0; a < ConvShape::kAxes; ++a) {
    inside &= s.padding[a] == 0 && (s.out[a] - 1) * s.stride[a] < s.in[a];
  }
  return inside && !s.is_pointwise();
}

Error convolve_strided(Context& context, const ConvShape& s, const float* input,
                       const float* weight, const float* bias, float* out) {
  const int64_t size = s.out_size();
  ETX_ASSIGN(float* const chosen, scratch<float>(context, s.in_channels * size,
                                                 "not enough temporary memory for chosen points"));
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    for (int64_t i = 0; i < s.in_channels * s.out[0]; ++i) {
      const int64_t plane = p * s.in_channels + i / s.out[0], z = i % s.out[0] * s.stride[0];
      isa().pad_lines(input + (plane * s.in[0] + z) * s.in[1] * s.in[2], s.stride[1] * s.in[2],
                      s.out[1], 0, s.out[2], s.stride[2], 0.0f, chosen + i * s.out[1] * s.out[2],
                      s.out[2]);
    }
    const int64_t row = p % s.groups * s.out_channels;
    ETX_TRY(multiply(context, weight + row * s.in_channels, chosen,
                     bias == nullptr ? nullptr : bias + row, out + p * s.out_channels * size,
                     s.out_channels, s.in_channels, size));
  }
  return Error::Ok;
}

/// The taps of a kernel that reach the input for some output, a box of them.
struct LiveTaps {
  ConvShape shape;  ///< Only these taps.
  int64_t first[ConvShape::kAxes];
  bool are_fewer = false;

  explicit LiveTaps(const ConvShape& s) : shape(s) {
    bool any = !s.transposed;
    for (int a = 0; a < ConvShape::kAxes; ++a) {
      const int64_t last = (s.out[a] - 1) * s.stride[a] - s.padding[a];
      int64_t begin = 0, end = s.kernel[a];
      while (begin < end && last + begin * s.dilation[a] < 0) ++begin;
      while (end > begin && (end - 1) * s.dilation[a] - s.padding[a] >= s.in[a]) --end;
      any &= begin < end;
      are_fewer |= end - begin < s.kernel[a];
      first[a] = begin;
      shape.kernel[a] = end - begin;
      shape.padding[a] -= begin * s.dilation[a];
    }
    // Products that take as long as a tap is copied.
    constexpr int64_t kWorth = 8;
    const int64_t taps = s.taps(), live = shape.taps(), points = s.batch * s.out_size();
    const bool pays =
        s.in_channels == 1 || 2 * live < taps || (taps - live) * points >= kWorth * taps;
    are_fewer &= any && pays;
  }

  void copy(const ConvShape& s, const float* weight, int64_t kernels, float* to) const {
    if (shape.kernel[0] == 1 && (shape.kernel[1] == 1 || shape.kernel[2] == s.kernel[2])) {
      const float* const line = weight + (first[0] * s.kernel[1] + first[1]) * s.kernel[2];
      const int64_t count = shape.taps(), step = s.taps();
      if (count == 1) return isa().store_transposed(line + first[2], step, kernels, 1, to, kernels);
      return isa().pad_lines(line + first[2], step, kernels, 0, count, 1, 0.0f, to, count);
    }
    for (int64_t i = 0; i < kernels; ++i, weight += s.taps()) {
      for (int64_t z = first[0]; z < first[0] + shape.kernel[0]; ++z) {
        for (int64_t y = first[1]; y < first[1] + shape.kernel[1]; ++y) {
          const float* const from = weight + (z * s.kernel[1] + y) * s.kernel[2] + first[2];
          for (int64_t x = 0; x < shape.kernel[2]; ++x) *to++ = from[x];
        }
      }
    }
  }
};

Error convolve_live(Context& context, const ConvShape& s, const LiveTaps& live, const float* input,
                    const float* weight, const float* bias, float* out) {
  const int64_t kernels = s.groups * s.out_channels * s.in_channels;
  ETX_ASSIGN(float* const taps, scratch<float>(context, kernels * live.shape.taps(),
                                               "not enough temporary memory for the kernel"));
  live.copy(s, weight, kernels, taps);
  return convolve_floats(context, live.shape, input, taps, bias, out);
}

/// Windows as wide as the image are lines, as they lie.
bool has_whole_lines(const ConvShape& s) {
  constexpr int64_t kFewOutputs = 4;
  return !s.transposed && s.in[0] == 1 && s.kernel[0] == 1 && s.padding[0] == 0 && s.in[2] > 1 &&
         s.kernel[2] == s.in[2] && s.padding[2] == 0 && s.dilation[1] == 1 && s.dilation[2] == 1 &&
         s.out[1] >= kFewOutputs;
}

/// Lines of one point that lie side by side are one line.
ConvShape with_long_lines(ConvShape s) {
  if (!kIsSmall && has_whole_lines(s)) {
    for (int64_t* const each : {s.in, s.kernel, s.stride, s.padding}) each[1] *= s.in[2];
    s.swap_axes(1, 2);
    s.in[1] = s.kernel[1] = s.stride[1] = 1;
    return s;
  }
  for (int i = 0; i < ConvShape::kAxes - 1 && s.in[2] == 1 && s.out[2] == 1; ++i) {
    if (s.kernel[2] != 1 || s.padding[2] != 0) break;
    s.stride[2] = s.dilation[2] = 1;
    s.swap_axes(1, 2);
    s.swap_axes(0, 1);
  }
  return s;
}

/// Outputs of one plane from which on they are rows of a product.
constexpr int64_t kManyOutputs = 8;

}  // namespace

Error convolve_floats(Context& context, const ConvShape& given, const float* input,
                      const float* weight, const float* bias, float* out) {
  const ConvShape s = with_long_lines(given);
  const bool is_many = !kIsSmall && s.out_channels >= kManyOutputs;
  const bool pointwise = s.is_pointwise() && (s.in_channels != 1 || is_many);
  if (!kIsSmall && !pointwise) {
    const LiveTaps live(s);
    if (live.are_fewer) return convolve_live(context, s, live, input, weight, bias, out);
  }
  if (has_few_points(s)) return convolve_few_points(context, s, input, weight, bias, out);
  if (!kIsSmall && !pointwise) {
    if (is_strided_pointwise(s)) return convolve_strided(context, s, input, weight, bias, out);
    if (has_mostly_dead_taps(s) && !suits_winograd(context, s)) {
      return convolve_by_taps(context, s, input, weight, bias, out);
    }
    if (is_transposed_by_taps(s)) {
      return convolve_transposed_by_taps(context, s, input, weight, bias, out);
    }
    if (is_transposed_by_channels(s)) {
      return convolve_transposed_by_channels(context, s, input, weight, bias, out);
    }
  }
  if (!pointwise && (s.in_channels == 0 || !PaddedPlanes(s).is_worthwhile(s) ||
                     (!kIsSmall && is_mostly_border(s)))) {
    return convolve_windows(context, s, input, weight, bias, out);
  }
  if (!s.transposed && s.in_channels == 1 && (kIsSmall || s.out_channels < kManyOutputs)) {
    return depthwise_convolution(context, s, input, weight, bias, out);
  }
  if (!kIsSmall && suits_winograd(context, s)) {
    ETX_ASSIGN(const bool finite, convolve_winograd(context, s, input, weight, bias, out));
    if (finite) return Error::Ok;
  }
  if (!pointwise) return sweep_convolution(context, s, input, weight, bias, out);
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    ETX_TRY(multiply(context, weight + row * s.in_channels, input + p * s.in_channels * s.in_size(),
                     bias == nullptr ? nullptr : bias + row,
                     out + p * s.out_channels * s.out_size(), s.out_channels, s.in_channels,
                     s.out_size()));
  }
  return Error::Ok;
}

}  // namespace etx::portable
