// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "ops/quantized/quantized_rows.h"

namespace etx::portable {
namespace {

/// The smallest and largest number, 0 included.
struct Extent {
  float low = 0;
  float high = 0;
};

template <typename T>
Extent extent_of(const T* x, int64_t n) {
  Extent extent;
  for (int64_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(x[i]);
    extent.low = min(v, extent.low);
    extent.high = max(v, extent.high);
  }
  return extent;
}

Error check_params(Context& context, const Tensor& input, const Tensor& scale,
                   const Tensor& zero_point) {
  ETX_CHECK(context, input.impl() != scale.impl() && input.impl() != zero_point.impl(),
            InvalidArgument, "out must not be an input");
  ETX_CHECK(context,
            is_floating(scale.scalar_type()) && is_castable(zero_point.scalar_type()) &&
                scale.impl() != zero_point.impl(),
            InvalidArgument, "scale_out must be of a floating dtype and zero_point_out an integer");
  return Error::Ok;
}

void write_params(const Tensor& scale, const Tensor& zero_point, int64_t i, double scale_value,
                  int64_t zero_value) {
  cast(&scale_value, ScalarType::Double, 1, mutable_element_ptr(scale, i), scale.scalar_type(), 1);
  cast(&zero_value, ScalarType::Long, 1, mutable_element_ptr(zero_point, i),
       zero_point.scalar_type(), 1);
}

/// One scale and zero point such that [quant_min, quant_max] spans all numbers of input, and 0.
Error choose_qparams_tensor_out(Context& context, const Tensor& input, int64_t quant_min,
                                int64_t quant_max, double eps, ScalarType /*dtype*/,
                                Tensor& scale_out, Tensor& zero_point_out) {
  ETX_TRY(check_params(context, input, scale_out, zero_point_out));
  ETX_CHECK(context, quant_min < quant_max && quant_min >= INT32_MIN && quant_max <= INT32_MAX,
            InvalidArgument, "quant_min must be less than quant_max, both within int32");
  Shape shape;
  shape.push(1);
  ETX_TRY(resize_out(context, scale_out, shape));
  ETX_TRY(resize_out(context, zero_point_out, shape));
  return dispatch(context, Floating{}, input.scalar_type(), [&](auto tag) {
    const Extent extent =
        extent_of(input.const_data_ptr<typename decltype(tag)::type>(), input.numel());
    const float steps = static_cast<float>(quant_max - quant_min);
    const float spread = (extent.high - extent.low) / steps;
    const float scale = spread > static_cast<float>(eps) ? spread : static_cast<float>(eps);
    const double zero =
        static_cast<double>(quant_min) - std::nearbyint(static_cast<double>(extent.low / scale));
    const double low = static_cast<double>(quant_min);
    const double high = static_cast<double>(quant_max);
    const double above = max(zero, low);
    write_params(scale_out, zero_point_out, 0, static_cast<double>(scale),
                 static_cast<int64_t>(min(above, high)));
    return Error::Ok;
  });
}

/// The same for int8, for each row along the last dimension; the end of the range with the smaller
/// error decides the zero point.
Error choose_qparams_per_token_asymmetric_out(Context& context, const Tensor& input,
                                              ScalarType /*dtype*/, Tensor& scale_out,
                                              Tensor& zero_point_out) {
  constexpr float kLow = -128.0f;
  constexpr float kHigh = 127.0f;
  constexpr float kEpsilon = 1.1920928955078125e-07f;
  ETX_TRY(check_params(context, input, scale_out, zero_point_out));
  ETX_CHECK(context, input.dim() > 0 && input.is_contiguous(), InvalidArgument,
            "input must be contiguous and have at least one dimension");
  Shape shape(input);
  const int64_t n = input.size(-1);
  shape[static_cast<size_t>(input.dim()) - 1] = 1;
  ETX_TRY(resize_out(context, scale_out, shape));
  ETX_TRY(resize_out(context, zero_point_out, shape));
  return dispatch(context, Floating{}, input.scalar_type(), [&](auto tag) {
    const auto* x = input.const_data_ptr<typename decltype(tag)::type>();
    for (int64_t row = 0; row < scale_out.numel(); ++row) {
      const Extent extent = extent_of(x + row * n, n);
      const float spread = (extent.high - extent.low) / (kHigh - kLow);
      const float scale = max(spread, kEpsilon);
      const float low = extent.low / scale;
      const float high = extent.high / scale;
      const float zero = (kLow + low) + (kHigh + high) > 0 ? kLow - low : kHigh - high;
      const float above = max(zero, kLow);
      write_params(scale_out, zero_point_out, row, static_cast<double>(scale),
                   static_cast<int64_t>(std::nearbyint(min(above, kHigh))));
    }
    return Error::Ok;
  });
}

/// The rows of a tensor along its last dimension, each with a scale and a zero point.
struct Tokens {
  int64_t rows = 0;
  int64_t length = 0;
  const double* scales = nullptr;
  const int64_t* zeros = nullptr;
};

Error read_tokens(Context& context, const Tensor& input, const Tensor& scales,
                  const Tensor& zero_points, const Tensor& out, Tokens& tokens) {
  ETX_CHECK(context, input.dim() > 0 && input.is_contiguous() && out.is_contiguous(),
            InvalidArgument, "input and out must be contiguous, of at least one dimension");
  ETX_CHECK(context, input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  int64_t rows = 1;
  for (ssize_t d = 0; d < input.dim() - 1; ++d) rows *= input.size(d);
  ETX_CHECK(context, scales.numel() == rows && zero_points.numel() == rows, InvalidArgument,
            "scales and zero_points must have one number for each row of input");
  ETX_CHECK(context, is_floating(scales.scalar_type()) && is_castable(zero_points.scalar_type()),
            InvalidArgument, "scales must be of a floating dtype and zero_points integers");
  ETX_ASSIGN(double* values, scratch<double>(context, rows, "no temporary memory for the scales"));
  ETX_ASSIGN(int64_t* zeros, scratch<int64_t>(context, rows, "no temporary memory for the scales"));
  cast(scales.const_data_ptr(), scales.scalar_type(), 1, values, ScalarType::Double, rows);
  cast(zero_points.const_data_ptr(), zero_points.scalar_type(), 1, zeros, ScalarType::Long, rows);
  for (int64_t i = 0; i < rows; ++i) ETX_TRY(check_zero_point(context, zeros[i]));
  tokens = {rows, input.size(-1), values, zeros};
  return resize_out(context, out, Shape(input));
}

/// Unlike quantize_per_tensor this rounds after adding the zero point, in the scales' precision.
template <typename Scale, typename T>
void quantize_token(const T* x, Scale inverse, Scale zero, const Range& range, int32_t* q,
                    int64_t n) {
  const Scale low = static_cast<Scale>(range.low);
  const Scale high = static_cast<Scale>(range.high);
  for (int64_t i = 0; i < n; ++i) {
    const Scale scaled = static_cast<Scale>(static_cast<Compute<T>>(x[i])) * inverse;
    const Scale v = std::nearbyint(scaled + zero);
    const Scale above = max(v, low);
    q[i] = static_cast<int32_t>(min(above, high));
  }
}

Error quantize_per_token_out(Context& context, const Tensor& input, const Tensor& scales,
                             const Tensor& zero_points, int64_t quant_min, int64_t quant_max,
                             ScalarType dtype, Tensor& out) {
  Range range;
  Tokens tokens;
  ETX_TRY(make_range(context, quant_min, quant_max, dtype, range));
  ETX_CHECK(context, dtype != ScalarType::Int, NotSupported,
            "dtype must be uint8, int8, int16 or uint16");
  ETX_CHECK(context, out.scalar_type() == dtype, InvalidArgument, "out must be of dtype");
  ETX_TRY(read_tokens(context, input, scales, zero_points, out, tokens));
  const bool single = scales.scalar_type() != ScalarType::Double;
  constexpr int64_t kBlock = 256;
  return dispatch(context, Floating{}, input.scalar_type(), [&](auto tag) {
    const auto* x = input.const_data_ptr<typename decltype(tag)::type>();
    context.parallel_for(0, tokens.rows, 1 + 8192 / (tokens.length + 1), [&](int64_t b, int64_t e) {
      int32_t block[kBlock];
      for (int64_t row = b; row < e; ++row) {
        const double scale = tokens.scales[row];
        for (int64_t i = 0; i < tokens.length; i += kBlock) {
          const int64_t n = min(tokens.length - i, kBlock);
          const int64_t at = row * tokens.length + i;
          if (single) {
            quantize_token(x + at, 1.0f / static_cast<float>(scale),
                           static_cast<float>(tokens.zeros[row]), range, block, n);
          } else {
            quantize_token(x + at, 1.0 / scale, static_cast<double>(tokens.zeros[row]), range,
                           block, n);
          }
          cast(block, ScalarType::Int, 1, mutable_element_ptr(out, at), dtype, n);
        }
      }
    });
    return Error::Ok;
  });
}

Error dequantize_per_token_out(Context& context, const Tensor& input, const Tensor& scales,
                               const Tensor& zero_points, int64_t /*quant_min*/,
                               int64_t /*quant_max*/, ScalarType dtype, ScalarType output_dtype,
                               Tensor& out) {
  Tokens tokens;
  ETX_CHECK(context, is_quantized_type(input.scalar_type()) && input.scalar_type() == dtype,
            InvalidArgument, "input must be of dtype, one of uint8, int8, int16, uint16, int32");
  ETX_CHECK(context, out.scalar_type() == output_dtype && is_floating(output_dtype),
            InvalidArgument, "out must be of output_dtype, which is floating");
  ETX_TRY(read_tokens(context, input, scales, zero_points, out, tokens));
  constexpr int64_t kBlock = 256;
  context.parallel_for(0, tokens.rows, 1 + 8192 / (tokens.length + 1), [&](int64_t b, int64_t e) {
    float block[kBlock];
    for (int64_t row = b; row < e; ++row) {
      for (int64_t i = 0; i < tokens.length; i += kBlock) {
        const int64_t n = min(tokens.length - i, kBlock);
        const int64_t at = row * tokens.length + i;
        dequantize_row(element_ptr(input, at), dtype, tokens.zeros[row],
                       static_cast<float>(tokens.scales[row]), block, n);
        cast(block, ScalarType::Float, 1, mutable_element_ptr(out, at), output_dtype, n);
      }
    }
  });
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("quantized_decomposed::choose_qparams.Tensor_out", choose_qparams_tensor_out,
               Floating::bits),
    ETX_KERNEL("quantized_decomposed::choose_qparams_per_token_asymmetric.out",
               choose_qparams_per_token_asymmetric_out, Floating::bits),
    ETX_KERNEL("quantized_decomposed::quantize_per_token.out", quantize_per_token_out,
               kQuantizedBits | Floating::bits),
    ETX_KERNEL("quantized_decomposed::dequantize_per_token.out", dequantize_per_token_out,
               kQuantizedBits | Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(qparams_kernels, kRows);

}  // namespace etx::portable
