// SPDX-License-Identifier: BSD-3-Clause
/// Powers. Squares, roots and reciprocals have loops of their own.

#include "ops/elementwise/arithmetic.h"

namespace etx::portable {
namespace {

/// Wraps; negative exponents give what truncation leaves of the reciprocal.
int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}
template <typename T>
T power(T base, T exponent) {
  return std::pow(base, exponent);
}

ETX_OP(power, power(a, b));
constexpr Loops kPower = loops_of<power_op>();

struct square_of {
  template <typename T>
  static T apply(T x) {
    return wrap_mul(x, x);
  }
};
struct cube_of {
  template <typename T>
  static T apply(T x) {
    return wrap_mul(wrap_mul(x, x), x);
  }
};

template <UnaryLoop Isa::* fast, typename Op>
constexpr Loops unary_loops() {
  return {&unary_loop<Op, int64_t, int64_t>, &isa_unary_loop<fast>,
          &unary_loop<Op, double, double>};
}
constexpr Loops kSquare = unary_loops<&Isa::square, square_of>();
constexpr Loops kCube = {&unary_loop<cube_of, int64_t, int64_t>, &unary_loop<cube_of, float, float>,
                         &unary_loop<cube_of, double, double>};
template <UnaryLoop Isa::* fast, typename Op>
constexpr Loops floating_unary_loops() {
  return {nullptr, &isa_unary_loop<fast>, &unary_loop<Op, double, double>};
}
struct root_of {
  static double apply(double x) { return std::sqrt(x); }
};
struct inverse_root_of {
  static double apply(double x) { return 1 / std::sqrt(x); }
};
struct reciprocal_of {
  static double apply(double x) { return 1 / x; }
};
constexpr Loops kRoot = floating_unary_loops<&Isa::sqrt, root_of>();
constexpr Loops kInverseRoot = floating_unary_loops<&Isa::rsqrt, inverse_root_of>();
constexpr Loops kReciprocal = floating_unary_loops<&Isa::reciprocal, reciprocal_of>();

/// The loop of one operand for this exponent, if there is one. Roots of -0 and -inf are not powers;
/// eager takes powers of float16, else roots.
Loop special(double exponent, ScalarType dtype) {
  const ScalarType as = wide(dtype);
  const bool has_roots = dtype != ScalarType::Half;
  if (exponent == 2) return kSquare[as];
  if (exponent == 3) return kCube[as];
  if (exponent == 0.5 && has_roots) return kRoot[as];
  if (exponent == -0.5 && has_roots) return kInverseRoot[as];
  if (exponent == -1) return kReciprocal[as];
  return nullptr;
}

Error pow_tensor_scalar_out(Context& context, const Tensor& self, Scalar exponent, Tensor& out) {
  const bool integral = !is_floating(out.scalar_type());
  ETX_CHECK(context, !integral || exponent.to<double>() >= 0, InvalidArgument,
            "integers cannot be raised to a negative power");
  const Loop loop = special(exponent.to<double>(), out.scalar_type());
  if (loop == nullptr || !RealBool::contains(self.scalar_type()) ||
      kind_of(self.scalar_type()) > kind_of(out.scalar_type()) ||
      kind_of(exponent) > kind_of(out.scalar_type())) {
    return arithmetic(context, self, exponent, out, kPower);
  }
  Map m;
  m.loop = loop;
  m.out_as = wide(out.scalar_type());
  const Operand operands[] = {Operand(self, m.out_as)};
  return map(context, operands, out, m);
}

Error pow_tensor_tensor_out(Context& context, const Tensor& self, const Tensor& exponent,
                            Tensor& out) {
  return arithmetic(context, self, exponent, out, kPower);
}

Error pow_scalar_out(Context& context, Scalar self, const Tensor& exponent, Tensor& out) {
  return arithmetic(context, self, exponent, out, kPower);
}

constexpr uint64_t kAll = RealBool::bits | kInPlace;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::pow.Tensor_Scalar_out", pow_tensor_scalar_out, kAll),
    ETX_KERNEL("aten::pow.Tensor_Tensor_out", pow_tensor_tensor_out, kAll),
    ETX_KERNEL("aten::pow.Scalar_out", pow_scalar_out, kAll),
};

}  // namespace

ETX_KERNEL_TABLE(pow_kernels, kRows);

}  // namespace etx::portable
