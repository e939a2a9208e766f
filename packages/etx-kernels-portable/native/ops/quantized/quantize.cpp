// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/cast.h"
#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "ops/quantized/quantized_rows.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kGrain = 16384;

/// `result` is where a kernel writes in the layout of `in`.
Error begin(Context& context, const Tensor& in, const Tensor& out, ResultOperand& result) {
  ETX_CHECK(context, in.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_TRY(resize_out(context, out, Shape(in)));
  return result.prepare(context, out, out.scalar_type(), in.impl()->dim_order);
}

/// quantize_row for any floating dtype; element `begin` on.
void quantize_part(const Tensor& in, int64_t begin, int64_t n, float inverse, int64_t zero_point,
                   const Range& range, char* out) {
  const int64_t width = static_cast<int64_t>(element_size(range.type));
  if (in.scalar_type() == ScalarType::Float) {
    quantize_row(in.const_data_ptr<float>() + begin, inverse, zero_point, range,
                 out + begin * width, n);
    return;
  }
  float block[kBlock];
  for (int64_t i = begin; i < begin + n; i += kBlock) {
    const int64_t count = min(begin + n - i, kBlock);
    cast(element_ptr(in, i), in.scalar_type(), 1, block, ScalarType::Float, count);
    quantize_row(block, inverse, zero_point, range, out + i * width, count);
  }
}

/// dequantize_row to any floating dtype; element `begin` on.
void dequantize_part(const Tensor& in, int64_t begin, int64_t n, int64_t zero_point, float scale,
                     ScalarType type, char* out) {
  if (type == ScalarType::Float) {
    dequantize_row(element_ptr(in, begin), in.scalar_type(), zero_point, scale,
                   reinterpret_cast<float*>(out) + begin, n);
    return;
  }
  const int64_t width = static_cast<int64_t>(element_size(type));
  float block[kBlock];
  for (int64_t i = begin; i < begin + n; i += kBlock) {
    const int64_t count = min(begin + n - i, kBlock);
    dequantize_row(element_ptr(in, i), in.scalar_type(), zero_point, scale, block, count);
    cast(block, ScalarType::Float, 1, out + i * width, type, count);
  }
}

Error check_quantize(Context& context, const Tensor& input, int64_t quant_min, int64_t quant_max,
                     ScalarType dtype, const Tensor& out, Range& range) {
  ETX_TRY(make_range(context, quant_min, quant_max, dtype, range));
  ETX_CHECK(context, is_floating(input.scalar_type()), InvalidArgument,
            "input must be of a floating dtype");
  ETX_CHECK(context, out.scalar_type() == dtype, InvalidArgument, "out must be of dtype");
  return Error::Ok;
}

Error check_dequantize(Context& context, const Tensor& input, ScalarType dtype,
                       std::optional<ScalarType> out_dtype, const Tensor& out) {
  ETX_CHECK(context, is_quantized_type(input.scalar_type()), NotSupported,
            "quantized tensors must be uint8, int8, int16, uint16 or int32");
  ETX_CHECK(context, input.scalar_type() == dtype, InvalidArgument, "input must be of dtype");
  ETX_CHECK(context, is_floating(out.scalar_type()), InvalidArgument,
            "out must be of a floating dtype");
  ETX_CHECK(context, !out_dtype.has_value() || out.scalar_type() == *out_dtype, InvalidArgument,
            "out must be of out_dtype");
  return Error::Ok;
}

Error quantize_per_tensor_out(Context& context, const Tensor& input, double scale,
                              int64_t zero_point, int64_t quant_min, int64_t quant_max,
                              ScalarType dtype, Tensor& out) {
  Range range;
  ResultOperand result;
  ETX_TRY(check_quantize(context, input, quant_min, quant_max, dtype, out, range));
  ETX_TRY(check_zero_point(context, zero_point));
  ETX_TRY(begin(context, input, out, result));
  const float inverse = static_cast<float>(1.0 / scale);
  context.parallel_for(0, input.numel(), kGrain, [&](int64_t begin, int64_t end) {
    quantize_part(input, begin, end - begin, inverse, zero_point, range, result.data<char>());
  });
  return result.finish(context, out);
}

Error dequantize_per_tensor_out(Context& context, const Tensor& input, double scale,
                                int64_t zero_point, int64_t /*quant_min*/, int64_t /*quant_max*/,
                                ScalarType dtype, std::optional<ScalarType> out_dtype,
                                Tensor& out) {
  ResultOperand result;
  ETX_TRY(check_dequantize(context, input, dtype, out_dtype, out));
  ETX_TRY(check_zero_point(context, zero_point));
  ETX_TRY(begin(context, input, out, result));
  context.parallel_for(0, input.numel(), kGrain, [&](int64_t begin, int64_t end) {
    dequantize_part(input, begin, end - begin, zero_point, static_cast<float>(scale),
                    out.scalar_type(), result.data<char>());
  });
  return result.finish(context, out);
}

/// A scale and a zero point, each the one element of a tensor.
Error read_params(Context& context, const Tensor& scale, const Tensor& zero_point,
                  double& scale_value, int64_t& zero_value) {
  scale_value = 1;
  zero_value = 0;
  ETX_CHECK(context, scale.numel() == 1 && zero_point.numel() == 1, InvalidArgument,
            "scale and zero_point must have one element");
  ETX_CHECK(context, is_floating(scale.scalar_type()) && is_castable(zero_point.scalar_type()),
            InvalidArgument, "scale must be of a floating dtype and zero_point an integer");
  cast(scale.const_data_ptr(), scale.scalar_type(), 1, &scale_value, ScalarType::Double, 1);
  cast(zero_point.const_data_ptr(), zero_point.scalar_type(), 1, &zero_value, ScalarType::Long, 1);
  return Error::Ok;
}

Error quantize_per_tensor_tensor_out(Context& context, const Tensor& input, const Tensor& scale,
                                     const Tensor& zero_point, int64_t quant_min, int64_t quant_max,
                                     ScalarType dtype, Tensor& out) {
  double scale_value = 1;
  int64_t zero_value = 0;
  ETX_TRY(read_params(context, scale, zero_point, scale_value, zero_value));
  return quantize_per_tensor_out(context, input, scale_value, zero_value, quant_min, quant_max,
                                 dtype, out);
}

Error dequantize_per_tensor_tensor_out(Context& context, const Tensor& input, const Tensor& scale,
                                       const Tensor& zero_point, int64_t quant_min,
                                       int64_t quant_max, ScalarType dtype,
                                       std::optional<ScalarType> out_dtype, Tensor& out) {
  double scale_value = 1;
  int64_t zero_value = 0;
  ETX_TRY(read_params(context, scale, zero_point, scale_value, zero_value));
  return dequantize_per_tensor_out(context, input, scale_value, zero_value, quant_min, quant_max,
                                   dtype, out_dtype, out);
}

/// The parameters of each channel; `zeros` all 0 when there are none.
struct Channels {
  int64_t count = 0;
  int64_t inner = 1;  ///< Consecutive elements of a channel.
  int64_t outer = 0;
  const double* scales = nullptr;
  const int64_t* zeros = nullptr;
};

Error read_channels(Context& context, const Tensor& input, const Tensor& scales,
                    const std::optional<Tensor>& zero_points, int64_t axis, Channels& channels) {
  ssize_t dim = 0;
  ETX_CHECK(context, input.dim() > 0, InvalidArgument, "input must have at least one dimension");
  ETX_TRY(wrap_dim(context, axis, input.dim(), dim));
  const int64_t count = input.size(dim);
  ETX_CHECK(context, scales.numel() == count && is_floating(scales.scalar_type()), InvalidArgument,
            "scales must be of a floating dtype, one for each index of axis");
  ETX_CHECK(context,
            !zero_points.has_value() ||
                (zero_points->numel() == count && is_castable(zero_points->scalar_type())),
            InvalidArgument, "zero_points must be one number for each index of axis");
  ETX_ASSIGN(double* values, scratch<double>(context, count, "no temporary memory for the scales"));
  ETX_ASSIGN(int64_t* zeros,
             scratch<int64_t>(context, count, "no temporary memory for the scales"));
  cast(scales.const_data_ptr(), scales.scalar_type(), 1, values, ScalarType::Double, count);
  for (int64_t i = 0; i < count; ++i) zeros[i] = 0;
  if (zero_points.has_value()) {
    cast(zero_points->const_data_ptr(), zero_points->scalar_type(), 1, zeros, ScalarType::Long,
         count);
  }
  for (int64_t i = 0; i < count; ++i) ETX_TRY(check_zero_point(context, zeros[i]));
  const int64_t inner = input.stride(dim);
  channels = {count, inner, input.numel() == 0 ? 0 : input.numel() / (count * inner), values,
              zeros};
  return Error::Ok;
}

/// Calls `body(channel, first element, number)` for each run of elements of one channel.
template <typename Body>
void for_each_run(Context& context, const Channels& channels, const Body& body) {
  context.parallel_for(0, channels.outer * channels.count, 1 + kGrain / channels.inner,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t run = begin; run < end; ++run) {
                           body(run % channels.count, run * channels.inner, channels.inner);
                         }
                       });
}

Error quantize_per_channel_out(Context& context, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t axis, int64_t quant_min,
                               int64_t quant_max, ScalarType dtype, Tensor& out) {
  Range range;
  ResultOperand result;
  Channels channels;
  ETX_TRY(check_quantize(context, input, quant_min, quant_max, dtype, out, range));
  ETX_TRY(read_channels(context, input, scales, zero_points, axis, channels));
  ETX_TRY(begin(context, input, out, result));
  const bool single = scales.scalar_type() != ScalarType::Double;
  for_each_run(context, channels, [&](int64_t channel, int64_t begin, int64_t n) {
    const double scale = channels.scales[channel];
    const float inverse =
        single ? 1.0f / static_cast<float>(scale) : static_cast<float>(1.0 / scale);
    quantize_part(input, begin, n, inverse, channels.zeros[channel], range, result.data<char>());
  });
  return result.finish(context, out);
}

Error dequantize_per_channel_out(Context& context, const Tensor& input, const Tensor& scales,
                                 std::optional<Tensor> zero_points, int64_t axis,
                                 int64_t /*quant_min*/, int64_t /*quant_max*/, ScalarType dtype,
                                 std::optional<ScalarType> out_dtype, Tensor& out) {
  ResultOperand result;
  Channels channels;
  ETX_TRY(check_dequantize(context, input, dtype, out_dtype, out));
  ETX_TRY(read_channels(context, input, scales, zero_points, axis, channels));
  ETX_TRY(begin(context, input, out, result));
  for_each_run(context, channels, [&](int64_t channel, int64_t begin, int64_t n) {
    dequantize_part(input, begin, n, channels.zeros[channel],
                    static_cast<float>(channels.scales[channel]), out.scalar_type(),
                    result.data<char>());
  });
  return result.finish(context, out);
}

constexpr uint64_t kBits = Floating::bits | kQuantizedBits;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("quantized_decomposed::quantize_per_tensor.out", quantize_per_tensor_out, kBits),
    ETX_KERNEL("quantized_decomposed::quantize_per_tensor.Tensor_out",
               quantize_per_tensor_tensor_out, kBits),
    ETX_KERNEL("quantized_decomposed::quantize_per_channel.out", quantize_per_channel_out, kBits),
    ETX_KERNEL("quantized_decomposed::dequantize_per_tensor.out", dequantize_per_tensor_out, kBits),
    ETX_KERNEL("quantized_decomposed::dequantize_per_tensor.Tensor_out",
               dequantize_per_tensor_tensor_out, kBits),
    ETX_KERNEL("quantized_decomposed::dequantize_per_channel.out", dequantize_per_channel_out,
               kBits),
};

}  // namespace

ETX_KERNEL_TABLE(quantize_kernels, kRows);

}  // namespace etx::portable
