// SPDX-License-Identifier: BSD-3-Clause
/// Quotients, rounded or not, and their rests.

#include <atomic>
#include <optional>
#include <string_view>

#include "ops/elementwise/arithmetic.h"

namespace etx::portable {
namespace {

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return wrap_sub<int64_t>(0, a);
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// The quotient is rounded from the exact rest, so that it agrees with `remainder`. Each step is
/// rounded to `Step`.
template <typename Step, typename T>
T floor_divide_by_steps(T a, T b) {
  const auto step = [](T x) { return static_cast<T>(Step(x)); };
  if (b == 0) return a / b;
  const T rest = std::fmod(a, b);
  T quotient = step(step(a - rest) / b);
  if (rest != 0 && (b < 0) != (rest < 0)) quotient = step(quotient - 1);
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T down = std::floor(quotient);
  return step(quotient - down) > T(0.5) ? down + 1 : down;
}
template <typename T>
T floor_divide(T a, T b) {
  return floor_divide_by_steps<T>(a, b);
}

int64_t trunc_divide(int64_t a, int64_t b) { return b == -1 ? wrap_sub<int64_t>(0, a) : a / b; }
template <typename T>
T trunc_divide(T a, T b) {
  return std::trunc(a / b);
}

int64_t fmod(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
template <typename T>
T fmod(T a, T b) {
  return std::fmod(a, b);
}

/// The sign is that of b.
template <typename T>
T remainder(T a, T b) {
  const T rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

ETX_OP(floor_divide, floor_divide(a, b));
ETX_OP(trunc_divide, trunc_divide(a, b));
template <typename Step>
struct floor_steps_op {
  static float apply(float a, float b) { return floor_divide_by_steps<Step>(a, b); }
};
template <typename Step>
struct trunc_steps_op {
  static float apply(float a, float b) { return std::trunc(static_cast<float>(Step(a / b))); }
};
ETX_OP(div, a / b);
ETX_OP(fmod, fmod(a, b));
ETX_OP(remainder, remainder(a, b));

/// Integers: a zero divisor sets the flag `user` and gives 0.
template <typename Op>
void checked_loop(const void* user, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  bool by_zero = false;
  each_pair<int64_t, int64_t>(in, scalars, out, n, [&](int64_t a, int64_t b) {
    by_zero |= b == 0;
    return b == 0 ? 0 : Op::apply(a, b);
  });
  if (by_zero) {
    const_cast<std::atomic<bool>*>(static_cast<const std::atomic<bool>*>(user))->store(true);
  }
}

template <Rest rest>
size_t rests(const float* a, const float* b, float* y, size_t n, bool& left) {
  return isa().rest_float(a, b, y, n, rest, left);
}
size_t trunc_quotients(const float* a, const float* b, float* y, size_t n, bool&) {
  isa().div(a, b, y, n);
  return isa().round_float(y, y, n, Rounding::ToZero);
}

template <typename Op>
constexpr Loops checked_loops(Loop of_float) {
  return {&checked_loop<Op>, kIsSmall ? &binary_loop<Op, float, float> : of_float,
          &binary_loop<Op, double, double>};
}
template <typename Op, template <typename> class Steps>
constexpr Loops stepped_loops(Loop of_float) {
  Loops loops = checked_loops<Op>(of_float);
  loops.of_half = &binary_loop<Steps<Half>, float, float>;
  loops.of_bfloat16 = &binary_loop<Steps<BFloat16>, float, float>;
  loops.wide_single = true;
  return loops;
}
void div_double_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const double* const a = static_cast<const double*>(in[0]);
  const double* const b = static_cast<const double*>(in[1]);
  double* const y = static_cast<double*>(out);
  const int64_t steps[] = {scalars & 1u ? 0 : 1, scalars & 2u ? 0 : 1};
  int64_t i = 0;
  if (steps[0] == 1 && n > 0) {
    const auto step = static_cast<size_t>(steps[1]);
    i = static_cast<int64_t>(isa().div_double(a, b, step, y, static_cast<size_t>(n)));
  }
  for (; i < n; ++i) y[i] = a[i * steps[0]] / b[i * steps[1]];
}
constexpr Loops kDiv =
    with_wide_single(with_isa<div_op, &Isa::div, &Isa::div_scalar, &Isa::rdiv_scalar>(
        {nullptr, nullptr, &div_double_loop}));
constexpr Loops kFloor =
    stepped_loops<floor_divide_op, floor_steps_op>(&pair_loop<floor_divide_op, rests<Rest::Floor>>);
constexpr Loops kTrunc =
    stepped_loops<trunc_divide_op, trunc_steps_op>(&pair_loop<trunc_divide_op, trunc_quotients>);
constexpr Loops kFmod = checked_loops<fmod_op>(&pair_loop<fmod_op, rests<Rest::OfTrunc>>);
constexpr Loops kRemainder =
    checked_loops<remainder_op>(&pair_loop<remainder_op, rests<Rest::OfFloor>>);

Error divide(Context& context, const Side& a, const Side& b, const Tensor& out,
             const Loops& loops) {
  std::atomic<bool> by_zero{false};
  ETX_TRY(arithmetic(context, a, b, out, loops, &by_zero));
  ETX_CHECK(context, !by_zero.load(), InvalidArgument, "integers must not be divided by zero");
  return Error::Ok;
}

using Mode = std::optional<std::string_view>;

Error divide_by_mode(Context& context, const Side& a, const Side& b, const Mode& mode,
                     const Tensor& out) {
  if (!mode.has_value()) {
    ETX_CHECK(context, is_floating(out.scalar_type()), InvalidArgument,
              "out must have a floating dtype unless rounding_mode is given");
    return arithmetic(context, a, b, out, kDiv);
  }
  if (*mode == "floor") return divide(context, a, b, out, kFloor);
  if (*mode == "trunc") return divide(context, a, b, out, kTrunc);
  return context.fail(Error::InvalidArgument, "rounding_mode must be 'floor', 'trunc' or None");
}

Error div_out(Context& c, const Tensor& self, const Tensor& other, Tensor& out) {
  if (run_few(self, other, out, kDiv)) return Error::Ok;
  return arithmetic(c, self, other, out, kDiv);
}
Error div_scalar_out(Context& c, const Tensor& self, Scalar other, Tensor& out) {
  return arithmetic(c, self, other, out, kDiv);
}
Error div_mode_out(Context& c, const Tensor& self, const Tensor& other, Mode rounding_mode,
                   Tensor& out) {
  return divide_by_mode(c, self, other, rounding_mode, out);
}
Error div_scalar_mode_out(Context& c, const Tensor& self, Scalar other, Mode rounding_mode,
                          Tensor& out) {
  return divide_by_mode(c, self, other, rounding_mode, out);
}
Error floor_divide_out(Context& c, const Tensor& self, const Tensor& other, Tensor& out) {
  return divide(c, self, other, out, kFloor);
}
Error fmod_out(Context& c, const Tensor& self, const Tensor& other, Tensor& out) {
  return divide(c, self, other, out, kFmod);
}
Error fmod_scalar_out(Context& c, const Tensor& self, Scalar other, Tensor& out) {
  return divide(c, self, other, out, kFmod);
}
Error remainder_out(Context& c, const Tensor& self, const Tensor& other, Tensor& out) {
  return divide(c, self, other, out, kRemainder);
}
Error remainder_scalar_out(Context& c, const Tensor& self, Scalar other, Tensor& out) {
  return divide(c, self, other, out, kRemainder);
}

constexpr uint64_t kNumbers = Real::bits | kInPlace;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::div.out", div_out, RealBool::bits | kInPlace),
    ETX_KERNEL("aten::div.Scalar_out", div_scalar_out, RealBool::bits | kInPlace),
    ETX_KERNEL("aten::div.out_mode", div_mode_out, kNumbers),
    ETX_KERNEL("aten::div.Scalar_mode_out", div_scalar_mode_out, kNumbers),
    ETX_KERNEL("aten::floor_divide.out", floor_divide_out, kNumbers),
    ETX_KERNEL("aten::fmod.Tensor_out", fmod_out, kNumbers),
    ETX_KERNEL("aten::fmod.Scalar_out", fmod_scalar_out, kNumbers),
    ETX_KERNEL("aten::remainder.Tensor_out", remainder_out, kNumbers),
    ETX_KERNEL("aten::remainder.Scalar_out", remainder_scalar_out, kNumbers),
};

}  // namespace

ETX_KERNEL_TABLE(div_kernels, kRows);

}  // namespace etx::portable
