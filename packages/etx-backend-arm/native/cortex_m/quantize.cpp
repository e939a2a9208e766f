// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "cortex_m/families.h"
#include "cortex_m/operands.h"
#include "cortex_m/round_even.h"

namespace etx::cortex_m {
namespace {

Error check(Context& context, const Tensor& floats, const Tensor& bytes, float scale,
            int64_t zero_point, int64_t low, int64_t high) {
  ETX_CHECK(context,
            floats.scalar_type() == ScalarType::Float && bytes.scalar_type() == ScalarType::Char,
            NotSupported, "only float32 and int8 are converted to each other");
  ETX_CHECK(context, is_like(floats, bytes), InvalidArgument,
            "input and out must have the same sizes in the same order of memory");
  ETX_CHECK(context, scale > 0 && scale <= 3e38f, InvalidArgument, "scale must be positive");
  ETX_CHECK(context, zero_point >= -128 && zero_point <= 127 && low >= -128 && high <= 127,
            InvalidArgument, "zero_point, quant_min and quant_max must be those of int8");
  return Error::Ok;
}

/// The nearest float of the nearest double of 1 / scale, without arithmetic of doubles; `scale` is
/// positive and normal. Of a float it is the nearest float of 1 / scale: a double has more than
/// twice the bits.
float inverse_of(double scale, float step) {
  constexpr int kBits = 52, kBeyondFloat = 29;
  uint64_t bits;
  memcpy(&bits, &scale, sizeof(bits));
  if (bits << (64 - kBeyondFloat) == 0) return 1.0f / step;
  const uint64_t one = uint64_t{1} << kBits;
  const uint64_t divisor = (bits & (one - 1)) | one;
  uint64_t exponent = 2046 - (bits >> kBits), quotient = one;
  if (divisor != one) {
    --exponent;
    uint64_t rest = one;
    quotient = 0;
    for (int i = 0; i <= kBits; ++i) {
      rest <<= 1;
      quotient <<= 1;
      if (rest < divisor) continue;
      rest -= divisor;
      ++quotient;
    }
    if (rest << 1 > divisor) ++quotient;
  }
  bits = exponent << kBits | (quotient & (one - 1));
  double inverse;
  memcpy(&inverse, &bits, sizeof(inverse));
  return detail::to_float(inverse);
}

/// out = clamp(round(input / scale) + zero_point), the division a product with 1 / scale.
Error quantize_out(Context& context, const Tensor& input, double scale, int64_t zero_point,
                   int64_t low, int64_t high, ScalarType, Tensor& out) {
  const float step = detail::to_float(scale);
  ETX_TRY(check(context, input, out, step, zero_point, low, high));
  const float inverse = inverse_of(scale, step);
  const auto zero = static_cast<int32_t>(zero_point);
  const auto least = static_cast<int32_t>(low), most = static_cast<int32_t>(high);
  const float* const from = input.const_data_ptr<float>();
  int8_t* const to = out.mutable_data_ptr<int8_t>();
  for (ssize_t i = 0, n = input.numel(); i < n; ++i) {
    const int32_t moved = round_even(from[i] * inverse) + zero;
    to[i] = static_cast<int8_t>(moved < least ? least : moved > most ? most : moved);
  }
  return Error::Ok;
}

Error dequantize_out(Context& context, const Tensor& input, double scale, int64_t zero_point,
                     int64_t low, int64_t high, ScalarType, Tensor& out) {
  const float factor = detail::to_float(scale);
  ETX_TRY(check(context, out, input, factor, zero_point, low, high));
  const auto zero = static_cast<int32_t>(zero_point);
  const int8_t* const from = input.const_data_ptr<int8_t>();
  float* const to = out.mutable_data_ptr<float>();
  for (ssize_t i = 0, n = input.numel(); i < n; ++i) {
    to[i] = static_cast<float>(from[i] - zero) * factor;
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantize_per_tensor.out", quantize_out),
    ETX_CORTEX_M_KERNEL("cortex_m::dequantize_per_tensor.out", dequantize_out),
};

}  // namespace

ETX_KERNEL_TABLE(quantize_kernels, kRows);

}  // namespace etx::cortex_m
