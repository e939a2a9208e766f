// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_QUANTIZED_ROWS_H_
#define ETX_PORTABLE_QUANTIZED_ROWS_H_

#include <cstdint>

#include <etx/kernel.h>

namespace etx::portable {

/// uint8, int8, int16, uint16 and int32.
constexpr uint64_t kQuantizedBits = dtype_bit(ScalarType::Byte) | dtype_bit(ScalarType::Char) |
                                    dtype_bit(ScalarType::Short) | dtype_bit(ScalarType::UInt16) |
                                    dtype_bit(ScalarType::Int);
constexpr bool is_quantized_type(ScalarType type) {
  return is_valid(type) && (kQuantizedBits & dtype_bit(type)) != 0;
}

/// The integers a quantized number may be: within these bounds and the range of `type`.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
  ScalarType type = ScalarType::Char;
};

/// Errors: InvalidArgument when the bounds are not within the range of `type`.
Error make_range(Context& context, int64_t quant_min, int64_t quant_max, ScalarType type,
                 Range& range);

/// Zero points must be within the range of int32. Errors: InvalidArgument.
Error check_zero_point(Context& context, int64_t zero_point);

/// q[i] = clamp(round(x[i] * inverse) + zero_point); round to nearest even.
void quantize_row(const float* x, float inverse, int64_t zero_point, const Range& range, void* q,
                  int64_t n);

/// y[i] = (q[i] - zero_point) * scale.
void dequantize_row(const void* q, ScalarType type, int64_t zero_point, float scale, float* y,
                    int64_t n);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_QUANTIZED_ROWS_H_
