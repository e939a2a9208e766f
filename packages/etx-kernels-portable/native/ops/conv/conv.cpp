// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "ops/conv/conv_float.h"
#include "ops/conv/conv_shape.h"
#include "ops/conv/conv_windows.h"
#include "ops/linalg/pair_product.h"

namespace etx::portable {
namespace {

void round_to_half(float* x, int64_t n) {
  constexpr int64_t kMost = 256;
  uint16_t halves[kMost];
  for (int64_t i = 0; i < n; i += kMost) {
    const auto count = static_cast<size_t>(min(kMost, n - i));
    isa().to_half(x + i, halves, count);
    isa().from_half(halves, x + i, count);
  }
}

/// One plane of a transposed convolution in float16, whose sums ATen rounds after each tap.
void transposed_half_plane(const ConvShape& s, int64_t p, const float* input, const float* weight,
                           const float* bias, float* column, float* to) {
  const int64_t taps = s.taps(), outputs = s.groups * s.out_channels;
  const int64_t image = p / outputs, channel = p % outputs;
  const int64_t group = channel / s.out_channels, oc = channel % s.out_channels;
  const int64_t first = group * s.in_channels;
  for (int64_t i = 0; i < s.out_size(); ++i) to[i] = 0;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t i = 0; i < s.in_size(); ++i) column[i] = 0;
    for (int64_t ic = 0; ic < s.in_channels; ++ic) {
      const float w = weight[((first + ic) * s.out_channels + oc) * taps + tap];
      const float* const from =
          input + (image * s.groups * s.in_channels + first + ic) * s.in_size();
      for (int64_t i = 0; i < s.in_size(); ++i) column[i] += w * from[i];
    }
    round_to_half(column, s.in_size());
    add_tap(s, tap, 1.0f, column, to);
    round_to_half(to, s.out_size());
  }
  if (bias == nullptr) return;
  for (int64_t i = 0; i < s.out_size(); ++i) to[i] += bias[channel];
}

Error convolve_transposed_half(Context& context, const ConvShape& s, const float* input,
                               const float* weight, const float* bias, float* out) {
  const int64_t planes = s.batch * s.groups * s.out_channels;
  const int64_t threads = max<int64_t>(context.num_threads(), 1);
  const int64_t slots = min(planes, threads);
  const Checked floats = Checked(slots) * s.in_size() + 1;
  ETX_ASSIGN(float* const columns, scratch<float>(context, floats.value_or(-1),
                                                  "no temporary memory for the sums of a tap"));
  context.parallel_for(0, slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      for (int64_t p = slot; p < planes; p += slots) {
        transposed_half_plane(s, p, input, weight, bias, columns + slot * s.in_size(),
                              out + p * s.out_size());
      }
    }
  });
  return Error::Ok;
}

/// A pointwise convolution of bfloat16, a product for each group of each image.
Error convolve_pairs(Context& context, const Pairs& pairs, const ConvShape& s, const void* input,
                     const void* weight, const float* bias, float* out) {
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    ETX_TRY(multiply_pairs(
        context, pairs, static_cast<const uint16_t*>(weight) + row * s.in_channels,
        static_cast<const uint16_t*>(input) + p * s.in_channels * s.in_size(),
        bias == nullptr ? nullptr : bias + row, out + p * s.out_channels * s.out_size(), 1,
        s.out_channels, s.in_channels, s.out_size()));
  }
  return Error::Ok;
}

Error convolution_out(Context& context, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias, IntList stride, IntList padding,
                      IntList dilation, bool transposed, IntList output_padding, int64_t groups,
                      Tensor& out) {
  ConvShape shape;
  ETX_TRY(read_conv_shape(context, input, weight, bias, stride, padding, dilation, transposed,
                          output_padding, groups, shape));
  const ScalarType dtype = input.scalar_type();
  ETX_CHECK(context,
            weight.scalar_type() == dtype && out.scalar_type() == dtype &&
                (!bias.has_value() || bias->scalar_type() == dtype),
            InvalidArgument, "input, weight, bias and out must have the same dtype");
  ETX_CHECK(context, Real::contains(dtype), NotSupported,
            "convolution takes floating and integer dtypes");
  Shape sizes;
  sizes.push(shape.batch);
  sizes.push(shape.groups * shape.out_channels);
  for (ssize_t a = ConvShape::kAxes - input.dim() + 2; a < ConvShape::kAxes; ++a) {
    sizes.push(shape.out[a]);
  }
  ETX_TRY(resize_out(context, out, sizes));
  if (shape.is_empty()) return Error::Ok;
  const ScalarType type = multiplied_as(dtype);
  return dispatch<is_multiplied>(Multiplied{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b;
    ResultOperand result;
    ETX_TRY(read_operand(context, bias, type, b));
    ETX_TRY(result.prepare(context, out, type));
    if constexpr (std::is_same_v<T, float>) {
      const Pairs* const pairs = pairs_for(dtype, shape.in_channels);
      if (pairs != nullptr && shape.is_pointwise() && shape.out_channels >= 4) {
        const void *image, *matrix;
        ETX_TRY(read_operand(context, input, dtype, image));
        ETX_TRY(read_operand(context, weight, dtype, matrix));
        ETX_TRY(convolve_pairs(context, *pairs, shape, image, matrix, b, result.data<T>()));
        return result.finish(context, out);
      }
    }
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, weight, type, w));
    if constexpr (std::is_same_v<T, float>) {
      if (shape.transposed && dtype == ScalarType::Half) {
        ETX_TRY(convolve_transposed_half(context, shape, x, w, b, result.data<T>()));
        return result.finish(context, out);
      }
      ETX_TRY(convolve_floats(context, shape, x, w, b, result.data<T>()));
    } else {
      ETX_TRY(convolve_windows(context, shape, x, w, b, result.data<T>()));
    }
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::convolution.out", convolution_out, Real::bits),
};

}  // namespace

ETX_KERNEL_TABLE(conv_kernels, kRows);

}  // namespace etx::portable
