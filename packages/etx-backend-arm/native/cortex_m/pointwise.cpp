// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/fixed_point.h"
#include "cortex_m/machine.h"
#include "cortex_m/operands.h"

namespace etx::cortex_m {
namespace {

/// Calls `f` with runs of two tensors that are repeated to the sizes of `out`.
template <typename F>
Error for_runs(Context& context, const Tensor& a, const Tensor& b, Tensor& out, const F& f) {
  Repeated repeated;
  ETX_CHECK(context, is_int8(out) && is_int8(a) && is_int8(b) && repeated.read(a, b, out),
            InvalidArgument, "operands must be int8, and repeated give the sizes of out");
  repeated.each(a.const_data_ptr<int8_t>(), b.const_data_ptr<int8_t>(),
                out.mutable_data_ptr<int8_t>(), out.numel(), f);
  return Error::Ok;
}

/// Calls `f` with the bytes of two tensors.
template <typename F>
Error map(Context& context, const Tensor& a, const Tensor& b, Tensor& out, const F& f) {
  return for_runs(context, a, b, out,
                  [&](const int8_t* x, const int8_t* y, int8_t* to, ssize_t count) {
                    for (ssize_t i = 0; i < count; ++i) to[i] = f(x[i], y[i]);
                  });
}

constexpr int kLeftShift = 20;

/// An operand of a sum: its zero point and its factor to the common scale.
struct Operand {
  int32_t zero_point;
  Factor factor;
};

#if defined(ETX_CORTEX_M_MVE)

/// Four elements, with the common scale; fewer with `few`.
inline int32x4_t scaled(const int8_t* at, const Operand& operand, mve_pred16_t few) {
  const int32x4_t moved = vsubq_n_s32(vldrbq_z_s32(at, few), operand.zero_point);
  return requantize<true>(vshlq_n_s32(moved, kLeftShift), vdupq_n_s32(operand.factor.multiplier),
                          vdupq_n_s32(operand.factor.shift));
}

void add_all(const int8_t* x, const Operand& a, const int8_t* y, const Operand& b, ssize_t count,
             const Epilogue& end, Factor last, int8_t* to) {
  for (; count > 0; count -= 4, x += 4, y += 4, to += 4) {
    const mve_pred16_t few = vctp32q(static_cast<uint32_t>(count));
    int32x4_t sum = vaddq_s32(scaled(x, a, few), scaled(y, b, few));
    sum = requantize<true>(sum, vdupq_n_s32(last.multiplier), vdupq_n_s32(last.shift));
    sum = vaddq_n_s32(sum, end.offset);
    sum = vminq_s32(vmaxq_s32(sum, vdupq_n_s32(end.low)), vdupq_n_s32(end.high));
    vstrbq_p_s32(to, sum, few);
  }
}

#else

inline int32_t scaled(int8_t x, const Operand& operand) {
  return requantize((x - operand.zero_point) * (1 << kLeftShift), operand.factor);
}

void add_all(const int8_t* x, const Operand& a, const int8_t* y, const Operand& b, ssize_t count,
             const Epilogue& end, Factor last, int8_t* to) {
  for (ssize_t i = 0; i < count; ++i) {
    to[i] = end(wrapping_add(scaled(x[i], a), scaled(y[i], b)), last);
  }
}

#endif

Error add_out(Context& context, const Tensor& self, int64_t self_zero_point,
              int64_t self_multiplier, int64_t self_shift, const Tensor& other,
              int64_t other_zero_point, int64_t other_multiplier, int64_t other_shift,
              int64_t output_zero_point, int64_t output_multiplier, int64_t output_shift,
              int64_t low, int64_t high, Tensor& out) {
  ETX_CHECK(context,
            is_offset(self_zero_point) && is_offset(other_zero_point) &&
                is_offset(output_zero_point) && low >= -128 && high <= 127,
            InvalidArgument, "zero points and bounds must be those of int8");
  ETX_CHECK(context,
            is_factor(self_multiplier, self_shift) && is_factor(other_multiplier, other_shift) &&
                is_factor(output_multiplier, output_shift),
            InvalidArgument, "multipliers must be int32, shifts within -31 and 31");
  const Operand first = {static_cast<int32_t>(self_zero_point),
                         factor(self_multiplier, self_shift)};
  const Operand second = {static_cast<int32_t>(other_zero_point),
                          factor(other_multiplier, other_shift)};
  const Epilogue end = {static_cast<int32_t>(output_zero_point), static_cast<int32_t>(low),
                        static_cast<int32_t>(high)};
  const Factor last = factor(output_multiplier, output_shift);
  return for_runs(context, self, other, out,
                  [&](const int8_t* x, const int8_t* y, int8_t* to, ssize_t count) {
                    add_all(x, first, y, second, count, end, last, to);
                  });
}

Error mul_out(Context& context, const Tensor& self, int64_t self_zero_point, const Tensor& other,
              int64_t other_zero_point, int64_t output_zero_point, int64_t multiplier,
              int64_t shift, Tensor& out) {
  ETX_CHECK(context,
            is_offset(self_zero_point) && is_offset(other_zero_point) &&
                is_offset(output_zero_point) && is_factor(multiplier, shift),
            InvalidArgument, "zero points must be those of int8, shift within -31 and 31");
  const auto a = static_cast<int32_t>(self_zero_point), b = static_cast<int32_t>(other_zero_point);
  const Epilogue epilogue = {static_cast<int32_t>(output_zero_point), -128, 127};
  const Factor last = factor(multiplier, shift);
  return map(context, self, other, out,
             [&](int8_t x, int8_t y) { return epilogue((x - a) * (y - b), last); });
}

Error minimum_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) {
  return map(context, self, other, out, [](int8_t x, int8_t y) { return x < y ? x : y; });
}

Error maximum_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) {
  return map(context, self, other, out, [](int8_t x, int8_t y) { return x < y ? y : x; });
}

/// out = lut[input + 128].
Error activation_out(Context& context, const Tensor& input, const Tensor& lut, Tensor& out) {
  ETX_CHECK(context,
            lut.scalar_type() == ScalarType::Char && lut.numel() == 256 && lut.is_contiguous(),
            InvalidArgument, "lut must be int8, 256 of them");
  const int8_t* const table = lut.const_data_ptr<int8_t>();
  return map(context, input, input, out, [&](int8_t x, int8_t) { return table[x + 128]; });
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_add.out", add_out),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_mul.out", mul_out),
    ETX_CORTEX_M_KERNEL("cortex_m::minimum.out", minimum_out),
    ETX_CORTEX_M_KERNEL("cortex_m::maximum.out", maximum_out),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_activation.out", activation_out),
};

}  // namespace

ETX_KERNEL_TABLE(pointwise_kernels, kRows);

}  // namespace etx::cortex_m
