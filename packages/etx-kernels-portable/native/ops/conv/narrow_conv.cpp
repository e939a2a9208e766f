// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/conv/conv_shape.h"
#include "ops/conv/conv_sweep.h"
#include "ops/conv/padded_planes.h"
#include "ops/linalg/gemm.h"
#include "ops/linalg/pair_product.h"
#include "ops/linalg/product.h"

namespace etx::portable {
namespace {

/// True where the channels of the input lie last, or might as well: the kernel has one tap.
bool has_channels_last(const Tensor& weight, const ConvShape& s) {
  const auto order = weight.dim_order();
  bool is_last = order[0] == 0 && order[order.size() - 1] == 1;
  for (size_t i = 1; i + 1 < order.size(); ++i) is_last &= order[i] == i + 1;
  return is_last || (s.taps() == 1 && weight.is_contiguous());
}

/// Sets `w` to the weight as (O, taps, `channels`), zeros behind those of the input.
Error read_weight(Context& context, const Tensor& weight, const ConvShape& s, int64_t channels,
                  const uint16_t*& w) {
  const bool is_last = has_channels_last(weight, s);
  if (is_last && channels == s.in_channels) {
    w = static_cast<const uint16_t*>(weight.const_data_ptr());
    return Error::Ok;
  }
  const auto* rows = static_cast<const uint16_t*>(weight.const_data_ptr());
  if (!is_last) ETX_TRY(read_operand(context, weight, ScalarType::BFloat16, rows));
  const int64_t taps = s.taps(), count = s.groups * s.out_channels * taps;
  ETX_ASSIGN(uint16_t* const turned,
             scratch<uint16_t>(context, count * channels, "no temporary memory for the weight"));
  const int64_t next = is_last ? 1 : taps;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t* const from =
        rows + i / taps * taps * s.in_channels + i % taps * (is_last ? s.in_channels : 1);
    for (int64_t c = 0; c < channels; ++c) {
      turned[i * channels + c] = c < s.in_channels ? from[c * next] : uint16_t{0};
    }
  }
  w = turned;
  return Error::Ok;
}

/// A pointwise convolution by tiles, with panels of an image's pairs of channels.
Error multiply_panels(Context& context, const ConvShape& s, const Pairs& pairs, const float* input,
                      const uint16_t* weight, const float* bias, float* out) {
  const int64_t size = s.in_size(), depth = s.in_channels / 2, width = isa().tile_columns;
  const int64_t panels = divide_up(size, width);
  const int64_t threads = useful_threads(context, Checked(s.out_channels) * s.in_channels * size);
  ETX_ASSIGN(float* const packed, scratch<float>(context, panels * width * depth,
                                                 "no temporary memory for panels of pairs"));
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    const float* const image = input + p * s.in_channels * size;
    context.parallel_for(0, panels, divide_up(panels, threads), [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * width; first < min(end * width, size); first += width) {
        for (int64_t c = 0; c < depth; ++c) {
          const float* const from = image + 2 * c * size + first;
          pairs.interleave(from, from + size, packed + first * depth + c * width,
                           min(width, size - first));
        }
      }
    });
    Gemm g;
    Rows(weight + row * s.in_channels, true).set(g);
    g.a_stride = g.depth = depth;
    g.b = packed, g.b_stride = width, g.panel_stride = width * depth;
    g.bias = bias == nullptr ? nullptr : bias + row;
    g.c = out + p * s.out_channels * size, g.c_stride = size;
    g.row_end = s.out_channels, g.column_end = size;
    g.column_block = column_block(4 * depth);
    run_gemm(context, g, threads);
  }
  return Error::Ok;
}

/// A pointwise convolution with an image as it lies, or as pairs of its channels.
Error multiply_points(Context& context, const ConvShape& s, const Pairs* pairs, const float* input,
                      const uint16_t* weight, const float* bias, float* out) {
  const int64_t size = s.in_size(), depth = s.in_channels / (pairs == nullptr ? 1 : 2);
  float* paired = nullptr;
  if (pairs != nullptr) {
    ETX_ASSIGN(paired, scratch<float>(context, depth * size, "no temporary memory for pairs"));
  }
  const int64_t threads = useful_threads(context, Checked(s.out_channels) * s.in_channels * size);
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    const float* image = input + p * s.in_channels * size;
    if (pairs != nullptr) {
      context.parallel_for(0, depth, divide_up(depth, threads), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const float* const from = image + 2 * c * size;
          pairs->interleave(from, from + size, paired + c * size, size);
        }
      });
      image = paired;
    }
    const Rows rows(weight + row * s.in_channels, pairs != nullptr);
    ETX_TRY(multiply(context, rows, image, bias == nullptr ? nullptr : bias + row,
                     out + p * s.out_channels * size, s.out_channels, depth, size));
  }
  return Error::Ok;
}

/// A pointwise convolution of so few points that they are rows times the weight.
Error multiply_few_points(Context& context, const ConvShape& s, const float* input,
                          const uint16_t* weight, const float* bias, float* out) {
  const int64_t size = s.in_size();
  ETX_ASSIGN(float* const rows, scratch<float>(context, size * (s.in_channels + s.out_channels),
                                               "no temporary memory for points"));
  float* const made = rows + size * s.in_channels;
  for (int64_t p = 0; p < s.batch * s.groups; ++p) {
    const int64_t row = p % s.groups * s.out_channels;
    const float* const image = input + p * s.in_channels * size;
    float* const to = out + p * s.out_channels * size;
    for (int64_t i = 0; i < s.in_channels * size; ++i) {
      rows[i % size * s.in_channels + i / size] = image[i];
    }
    ETX_TRY(multiply_weight(context, rows, weight + row * s.in_channels, ScalarType::BFloat16,
                            ScalarType::Float, bias == nullptr ? nullptr : bias + row, made, size,
                            s.in_channels, s.out_channels));
    for (int64_t i = 0; i < s.out_channels * size; ++i) {
      to[i] = made[i % size * s.out_channels + i / size];
    }
  }
  return Error::Ok;
}

/// Channels of the weight that a group is multiplied with: an even number, where that is pairs and
/// fewer products.
int64_t padded_channels(const ConvShape& s) {
  const int64_t even = s.in_channels + s.in_channels % 2;
  const bool pays = !s.is_pointwise() && s.in_channels > 1;
  return pays && pairs_for(ScalarType::BFloat16, even) != nullptr ? even : s.in_channels;
}

Error convolve_narrow(Context& context, const ConvShape& s, int64_t channels, const float* input,
                      const uint16_t* weight, const float* bias, float* out) {
  const Pairs* const pairs = pairs_for(ScalarType::BFloat16, channels);
  if (!s.is_pointwise()) {
    return sweep_narrow(context, s, input, Rows(weight, pairs != nullptr), bias, out);
  }
  if (s.in_size() <= dot_rows()) {
    return multiply_few_points(context, s, input, weight, bias, out);
  }
  if (pairs != nullptr && pairs->in_tiles) {
    return multiply_panels(context, s, *pairs, input, weight, bias, out);
  }
  return multiply_points(context, s, pairs, input, weight, bias, out);
}

Error check(Context& context, const Tensor& input, const Tensor& weight,
            const std::optional<Tensor>& bias, const Tensor& out) {
  ETX_CHECK(context,
            input.scalar_type() == ScalarType::Float && out.scalar_type() == ScalarType::Float &&
                (!bias.has_value() || bias->scalar_type() == ScalarType::Float),
            InvalidArgument, "input, bias and out must be float32");
  ETX_CHECK(context, weight.scalar_type() == ScalarType::BFloat16, InvalidArgument,
            "weight must be bfloat16");
  return Error::Ok;
}

/// A convolution whose weight is bfloat16, which input may be rounded to.
Error narrow_conv_out(Context& context, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias, IntList stride, IntList padding,
                      IntList dilation, int64_t groups, Tensor& out) {
  ETX_TRY(check(context, input, weight, bias, out));
  ConvShape s;
  ETX_TRY(read_conv_shape(context, input, weight, bias, stride, padding, dilation, false, {},
                          groups, s));
  Shape sizes;
  sizes.push(s.batch);
  sizes.push(s.groups * s.out_channels);
  for (ssize_t a = ConvShape::kAxes - input.dim() + 2; a < ConvShape::kAxes; ++a) {
    sizes.push(s.out[a]);
  }
  ETX_TRY(resize_out(context, out, sizes));
  if (s.is_empty()) return Error::Ok;
  ETX_CHECK(context, s.is_pointwise() || PaddedPlanes(s).is_worthwhile(s), NotSupported,
            "the padding must not be so much larger than the image");
  ETX_CHECK(context, s.in_channels > 0, NotSupported, "input must have channels");
  const float *x, *b;
  const uint16_t* w;
  ResultOperand result;
  ETX_TRY(read_operand(context, input, ScalarType::Float, x));
  ETX_TRY(read_operand(context, bias, ScalarType::Float, b));
  const int64_t channels = padded_channels(s);
  ETX_TRY(read_weight(context, weight, s, channels, w));
  ETX_TRY(result.prepare(context, out, ScalarType::Float));
  ETX_TRY(convolve_narrow(context, s, channels, x, w, b, result.data<float>()));
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::narrow_conv.out", narrow_conv_out, dtype_bit(ScalarType::Float)),
};

}  // namespace

ETX_KERNEL_TABLE(narrow_conv_kernels, kRows);

}  // namespace etx::portable
