// SPDX-License-Identifier: BSD-3-Clause
/// Arithmetic on two tensors, or on a tensor and a number.

#include "isa/float_series.h"
#include "ops/elementwise/arithmetic.h"

namespace etx::portable {

namespace {

ETX_OP(add, wrap_add(a, b));
ETX_OP(sub, wrap_sub(a, b));
ETX_OP(mul, wrap_mul(a, b));
ETX_OP(maximum, maximum(a, b));
ETX_OP(minimum, minimum(a, b));
ETX_OP(atan2, std::atan2(a, b));
ETX_OP(hypot, std::hypot(a, b));
/// In float64, where no square of a float32 is too large or too small. Infinite beside NaN, too.
void hypot_float_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  each_pair<float, float>(in, scalars, out, n, [](float a, float b) {
    const double p = a, q = b;
    const auto length = static_cast<float>(std::sqrt(p * p + q * q));
    return std::fabs(a) == kInfinite || std::fabs(b) == kInfinite ? kInfinite : length;
  });
}
constexpr Loops kHypot = {nullptr,
                          kIsSmall ? &binary_loop<hypot_op, float, float> : &hypot_float_loop,
                          &binary_loop<hypot_op, double, double>};
ETX_OP(bitwise_and, a& b);
ETX_OP(bitwise_or, a | b);
ETX_OP(bitwise_xor, a ^ b);
ETX_OP(left_shift, b < 0 || b > 63 ? 0 : static_cast<T>(static_cast<uint64_t>(a) << b));
ETX_OP(right_shift, b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b);

constexpr Loops kAdd = with_narrow<add_op, false>(
    with_isa<add_op, &Isa::add, &Isa::add_scalar, &Isa::add_scalar>(loops_of<add_op>()));
/// a - s is a + (-s).
void sub_loop_float(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const float* a = static_cast<const float*>(in[0]);
  const float* b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  const size_t count = static_cast<size_t>(n);
  if (scalars == 0 && n >= kVector) return isa().sub(a, b, y, count);
  if (scalars == 2) return isa().add_scalar(a, -*b, y, count);
  if (scalars == 1) return isa().rsub_scalar(b, *a, y, count);
  each_pair<float, float>(in, scalars, out, n, [](float p, float q) { return p - q; });
}
constexpr Loops kSub =
    with_narrow<sub_op, false>({&binary_loop<sub_op, int64_t, int64_t>, &sub_loop_float,
                                &binary_loop<sub_op, double, double>});
constexpr Loops kMul = with_narrow<mul_op, false>(with_wide_single(
    with_isa<mul_op, &Isa::mul, &Isa::mul_scalar, &Isa::mul_scalar>(loops_of<mul_op>())));

/// y = a + b * *user.
template <typename T>
void add_scaled_loop(const void* user, const void* const* in, uint32_t scalars, void* out,
                     int64_t n) {
  const T scale = *static_cast<const T*>(user);
  if constexpr (std::is_same_v<T, float>) {
    if (scalars == 0) {
      return isa().add_scaled(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]),
                              scale, static_cast<float*>(out), static_cast<size_t>(n));
    }
    if (scalars == 1) {
      return isa().affine(static_cast<const float*>(in[1]), scale,
                          *static_cast<const float*>(in[0]), static_cast<float*>(out),
                          static_cast<size_t>(n));
    }
  }
  each_pair<T, T>(in, scalars, out, n,
                  [scale](T a, T b) { return wrap_add(a, wrap_mul(b, scale)); });
}
constexpr Loops kAddScaled = {&add_scaled_loop<int64_t>, &add_scaled_loop<float>,
                              &add_scaled_loop<double>};

bool is_one(const Scalar& value) {
  return value.is_integral() ? value.to<int64_t>() == 1 : value.to<double>() == 1;
}

Error add_scaled(Context& context, const Side& a, const Side& b, const Scalar& alpha, Tensor& out) {
  ETX_CHECK(context, !alpha.is_floating() || is_floating(out.scalar_type()), InvalidArgument,
            "alpha must be an integer where the result is one");
  const ScalarType to = out.scalar_type();
  const Element rounded = cast(alpha, to);
  Element scale;
  cast(rounded.bytes, to, 1, scale.bytes, wide(to), 1);
  return arithmetic(context, a, b, out, kAddScaled, scale.bytes);
}

Scalar negated(const Scalar& value) {
  return value.is_floating() ? Scalar(-value.to<double>())
                             : Scalar(wrap_sub<int64_t>(0, value.to<int64_t>()));
}

Error add(Context& context, const Side& a, const Side& b, const Scalar& alpha, Tensor& out) {
  if (is_one(alpha)) return arithmetic(context, a, b, out, kAdd);
  return add_scaled(context, a, b, alpha, out);
}

Error sub(Context& context, const Side& a, const Side& b, const Scalar& alpha, Tensor& out) {
  ETX_CHECK(context, a.kind != Kind::Bool || b.kind != Kind::Bool, NotSupported,
            "bool tensors cannot be subtracted");
  if (is_one(alpha)) return arithmetic(context, a, b, out, kSub);
  return add_scaled(context, a, b, negated(alpha), out);
}

Error add_out(Context& c, const Tensor& self, const Tensor& other, const Scalar& alpha,
              Tensor& out) {
  if (is_one(alpha) && run_few(self, other, out, kAdd)) return Error::Ok;
  return add(c, self, other, alpha, out);
}
Error add_scalar_out(Context& c, const Tensor& self, const Scalar& other, const Scalar& alpha,
                     Tensor& out) {
  return add(c, self, other, alpha, out);
}
Error sub_out(Context& c, const Tensor& self, const Tensor& other, const Scalar& alpha,
              Tensor& out) {
  if (is_one(alpha) && run_few(self, other, out, kSub)) return Error::Ok;
  return sub(c, self, other, alpha, out);
}
Error sub_scalar_out(Context& c, const Tensor& self, const Scalar& other, const Scalar& alpha,
                     Tensor& out) {
  return sub(c, self, other, alpha, out);
}
/// other - alpha * self.
Error rsub_scalar_out(Context& c, const Tensor& self, const Scalar& other, const Scalar& alpha,
                      Tensor& out) {
  return sub(c, other, self, alpha, out);
}

template <typename Op, uint64_t flip>
void extreme_long_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const int64_t* const a = static_cast<const int64_t*>(in[0]);
  const int64_t* const b = static_cast<const int64_t*>(in[1]);
  int64_t* const y = static_cast<int64_t*>(out);
  const int64_t steps[] = {scalars & 1u ? 0 : 1, scalars & 2u ? 0 : 1};
  int64_t i = 0;
  if (scalars == 0) {
    i = static_cast<int64_t>(isa().larger_long(a, b, flip, y, static_cast<size_t>(n)));
  }
  for (; i < n; ++i) y[i] = Op::apply(a[i * steps[0]], b[i * steps[1]]);
}
template <typename Op, BinaryLoop Isa::* fast, uint64_t flip>
constexpr Loops extremes() {
  return with_narrow<Op, true>(with_isa<Op, fast>(
      {&extreme_long_loop<Op, flip>, nullptr, &binary_loop<Op, double, double>}));
}

size_t angles(const float* s, const float* c, float* y, size_t n, bool&) {
  return isa().angle_float(s, c, y, n, kArcOfFloats);
}
constexpr Loops kAtan2 = {
    nullptr, kIsSmall ? &binary_loop<atan2_op, float, float> : &pair_loop<atan2_op, angles>,
    &binary_loop<atan2_op, double, double>};

#define ETX_BINARY(name, loops)                                                              \
  Error name##_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) { \
    static constexpr Loops kLoops = loops;                                                   \
    if (run_few(self, other, out, kLoops)) return Error::Ok;                                 \
    return arithmetic(context, self, other, out, kLoops);                                    \
  }
#define ETX_BINARY_SCALAR(name, loops)                                                       \
  Error name##_scalar_out(Context& context, const Tensor& self, Scalar other, Tensor& out) { \
    static constexpr Loops kLoops = loops;                                                   \
    return arithmetic(context, self, other, out, kLoops);                                    \
  }
ETX_BINARY(mul, kMul)
ETX_BINARY_SCALAR(mul, kMul)
ETX_BINARY(maximum, (extremes<maximum_op, &Isa::maximum, 0>()))
ETX_BINARY(minimum, (extremes<minimum_op, &Isa::minimum, UINT64_MAX>()))
ETX_BINARY(atan2, kAtan2)
ETX_BINARY(hypot, kHypot)
ETX_BINARY(bitwise_and, (with_narrow<bitwise_and_op, false>(integral_loops<bitwise_and_op>())))
ETX_BINARY_SCALAR(bitwise_and,
                  (with_narrow<bitwise_and_op, false>(integral_loops<bitwise_and_op>())))
ETX_BINARY(bitwise_or, (with_narrow<bitwise_or_op, false>(integral_loops<bitwise_or_op>())))
ETX_BINARY_SCALAR(bitwise_or, (with_narrow<bitwise_or_op, false>(integral_loops<bitwise_or_op>())))
ETX_BINARY(bitwise_xor, (with_narrow<bitwise_xor_op, false>(integral_loops<bitwise_xor_op>())))
ETX_BINARY_SCALAR(bitwise_xor,
                  (with_narrow<bitwise_xor_op, false>(integral_loops<bitwise_xor_op>())))
ETX_BINARY(left_shift, integral_loops<left_shift_op>())
ETX_BINARY_SCALAR(left_shift, integral_loops<left_shift_op>())
ETX_BINARY(right_shift, integral_loops<right_shift_op>())
ETX_BINARY_SCALAR(right_shift, integral_loops<right_shift_op>())
#undef ETX_BINARY
#undef ETX_BINARY_SCALAR

constexpr uint64_t kAll = RealBool::bits | kInPlace;
constexpr uint64_t kNumbers = Real::bits | kInPlace;
constexpr uint64_t kIntegers = IntegralBool::bits | kInPlace;
constexpr uint64_t kShifted = Integral::bits | kInPlace;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::add.out", add_out, kAll),
    ETX_KERNEL("aten::add.Scalar_out", add_scalar_out, kAll),
    ETX_KERNEL("aten::sub.out", sub_out, kNumbers),
    ETX_KERNEL("aten::sub.Scalar_out", sub_scalar_out, kNumbers),
    ETX_KERNEL("aten::rsub.Scalar_out", rsub_scalar_out, kNumbers),
    ETX_KERNEL("aten::mul.out", mul_out, kAll),
    ETX_KERNEL("aten::mul.Scalar_out", mul_scalar_out, kAll),
    ETX_KERNEL("aten::maximum.out", maximum_out, kAll),
    ETX_KERNEL("aten::minimum.out", minimum_out, kAll),
    ETX_KERNEL("aten::atan2.out", atan2_out, kAll),
    ETX_KERNEL("aten::hypot.out", hypot_out, Floating::bits | kInPlace),
    ETX_KERNEL("aten::bitwise_and.Tensor_out", bitwise_and_out, kIntegers),
    ETX_KERNEL("aten::bitwise_and.Scalar_out", bitwise_and_scalar_out, kIntegers),
    ETX_KERNEL("aten::bitwise_or.Tensor_out", bitwise_or_out, kIntegers),
    ETX_KERNEL("aten::bitwise_or.Scalar_out", bitwise_or_scalar_out, kIntegers),
    ETX_KERNEL("aten::bitwise_xor.Tensor_out", bitwise_xor_out, kIntegers),
    ETX_KERNEL("aten::bitwise_xor.Scalar_out", bitwise_xor_scalar_out, kIntegers),
    ETX_KERNEL("aten::bitwise_left_shift.Tensor_out", left_shift_out, kShifted),
    ETX_KERNEL("aten::bitwise_left_shift.Tensor_Scalar_out", left_shift_scalar_out, kShifted),
    ETX_KERNEL("aten::bitwise_right_shift.Tensor_out", right_shift_out, kShifted),
    ETX_KERNEL("aten::bitwise_right_shift.Tensor_Scalar_out", right_shift_scalar_out, kShifted),
};

}  // namespace

ETX_KERNEL_TABLE(binary_kernels, kRows);

}  // namespace etx::portable
