// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_QUANTIZED_H_
#define ETX_PORTABLE_LEVEL_QUANTIZED_H_

/// Rows of floats to 8-bit numbers and back.

#include "isa/isa.h"
#include "isa/level/bytes.h"

namespace etx::portable {
namespace {

#if ETX_SIMD_BYTES >= 32
void quantize_bytes(const float* x, float inverse, float first, float last, int32_t zero_point,
                    int8_t* q, size_t n) {
  // 1.5 * 2^23, whose last bit is 1: its sum with less than 2^22 is rounded to a whole number.
  constexpr float kMagic = 12582912.0f;
  constexpr int32_t kMagicBits = 0x4B400000;
  const VecI unbias = splat(zero_point - kMagicBits);
  const auto rounded = [=](VecF v) {
    v = smallest(largest(splat(first), v * inverse), splat(last));
    const VecI number = to_signed(bits(v + kMagic)) + unbias;
    return to_signed(to_unsigned(number) << 24) >> 24;
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_bytes(q + i, rounded(load(x + i)));
  if (i == n) return;
  store_bytes_part(q + i, rounded(load_part(x + i, n - i)), static_cast<int64_t>(n - i));
}

void dequantize_bytes(const int8_t* q, int32_t mask, float zero_point, float scale, float* y,
                      size_t n) {
  const auto number = [=](VecI v) { return (to_floats(v & mask) - zero_point) * scale; };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, number(widen_bytes(q + i)));
  if (i == n) return;
  store_part(y + i, number(widen_bytes_part(q + i, static_cast<int64_t>(n - i))), n - i);
}
#else
// Of shorter vectors compilers take several at a time.
void quantize_bytes(const float* __restrict x, float inverse, float first, float last,
                    int32_t zero_point, int8_t* __restrict q, size_t n) {
  constexpr float kRound = 12582912.0f;
  const auto zero = static_cast<float>(zero_point);
  for (size_t i = 0; i < n; ++i) {
    const float v = x[i] * inverse;
    const float above = v > first ? v : first;
    const float inside = above < last ? above : last;
    q[i] = static_cast<int8_t>(static_cast<int32_t>(((inside + kRound) - kRound) + zero));
  }
}

void dequantize_bytes(const int8_t* __restrict q, int32_t mask, float zero_point, float scale,
                      float* __restrict y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = (static_cast<float>(q[i] & mask) - zero_point) * scale;
}
#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_QUANTIZED_H_
