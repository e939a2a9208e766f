// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quantized/quantized_rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/min_max.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest even integer below 2^22.
constexpr float kRound = 12582912.0f;
constexpr int64_t kExact = int64_t{1} << 21;

template <typename T>
void quantize_small(const float* x, float inverse, float zero_point, float low, float high, T* q,
                    int64_t n) {
  const float first = low - zero_point;
  const float last = high - zero_point;
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i] * inverse;
    const float above = max(v, first);
    const float inside = min(above, last);
    const float rounded = (inside + kRound) - kRound;
    q[i] = static_cast<T>(static_cast<int32_t>(rounded + zero_point));
  }
}

template <typename T>
void quantize_large(const float* x, float inverse, double zero_point, double low, double high, T* q,
                    int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = std::nearbyint(static_cast<double>(x[i] * inverse)) + zero_point;
    const double above = max(v, low);
    q[i] = static_cast<T>(min(above, high));
  }
}

/// Bytes have a loop of the level.
template <typename T>
void quantize_as(const float* x, float inverse, int64_t zero_point, const Range& range, void* q,
                 int64_t n) {
  const bool exact =
      range.low > -kExact && range.high < kExact && zero_point > -kExact && zero_point < kExact;
  const auto zero = static_cast<float>(zero_point), low = static_cast<float>(range.low),
             high = static_cast<float>(range.high);
  if (!exact) {
    quantize_large(x, inverse, static_cast<double>(zero_point), static_cast<double>(range.low),
                   static_cast<double>(range.high), static_cast<T*>(q), n);
  } else if constexpr (sizeof(T) == 1) {
    isa().quantize_bytes(x, inverse, low - zero, high - zero, static_cast<int32_t>(zero_point),
                         static_cast<int8_t*>(q), static_cast<size_t>(n));
  } else {
    quantize_small(x, inverse, zero, low, high, static_cast<T*>(q), n);
  }
}

template <typename T>
void dequantize_as(const void* data, int64_t zero_point, float scale, float* y, int64_t n) {
  const T* q = static_cast<const T*>(data);
  const float zero = static_cast<float>(zero_point);
  if constexpr (sizeof(T) == 1) {
    isa().dequantize_bytes(static_cast<const int8_t*>(data), std::is_signed_v<T> ? -1 : 255, zero,
                           scale, y, static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(q[i]) - zero) * scale;
  }
}

template <typename T>
Range range_of(ScalarType type) {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), type};
}

}  // namespace

Error make_range(Context& context, int64_t quant_min, int64_t quant_max, ScalarType type,
                 Range& range) {
  range = {0, 0, type};
  switch (type) {
    case ScalarType::Byte: range = range_of<uint8_t>(type); break;
    case ScalarType::Char: range = range_of<int8_t>(type); break;
    case ScalarType::Short: range = range_of<int16_t>(type); break;
    case ScalarType::UInt16: range = range_of<uint16_t>(type); break;
    case ScalarType::Int: range = range_of<int32_t>(type); break;
    default:
      return context.fail(Error::NotSupported,
                          "quantized tensors must be uint8, int8, int16, uint16 or int32");
  }
  ETX_CHECK(context, quant_min >= range.low && quant_max <= range.high && quant_min <= quant_max,
            InvalidArgument, "quant_min and quant_max must lie within the range of the dtype");
  range.low = quant_min;
  range.high = quant_max;
  return Error::Ok;
}

Error check_zero_point(Context& context, int64_t zero_point) {
  ETX_CHECK(context, zero_point >= INT32_MIN && zero_point <= INT32_MAX, InvalidArgument,
            "zero_point must be within the range of int32");
  return Error::Ok;
}

void quantize_row(const float* x, float inverse, int64_t zero_point, const Range& range, void* q,
                  int64_t n) {
  switch (range.type) {
    case ScalarType::Byte: return quantize_as<uint8_t>(x, inverse, zero_point, range, q, n);
    case ScalarType::Char: return quantize_as<int8_t>(x, inverse, zero_point, range, q, n);
    case ScalarType::Short: return quantize_as<int16_t>(x, inverse, zero_point, range, q, n);
    case ScalarType::UInt16: return quantize_as<uint16_t>(x, inverse, zero_point, range, q, n);
    case ScalarType::Int: return quantize_as<int32_t>(x, inverse, zero_point, range, q, n);
    default: break;
  }
}

void dequantize_row(const void* q, ScalarType type, int64_t zero_point, float scale, float* y,
                    int64_t n) {
  switch (type) {
    case ScalarType::Byte: return dequantize_as<uint8_t>(q, zero_point, scale, y, n);
    case ScalarType::Char: return dequantize_as<int8_t>(q, zero_point, scale, y, n);
    case ScalarType::Short: return dequantize_as<int16_t>(q, zero_point, scale, y, n);
    case ScalarType::UInt16: return dequantize_as<uint16_t>(q, zero_point, scale, y, n);
    case ScalarType::Int: return dequantize_as<int32_t>(q, zero_point, scale, y, n);
    default: break;
  }
}

}  // namespace etx::portable
