// SPDX-License-Identifier: BSD-3-Clause
/// Elementwise functions of one tensor without parameters; the rows are in unary.def.

#include <limits>

#include "core/complex.h"
#include "core/dispatch.h"
#include "core/loops.h"
#include "core/map.h"

namespace etx::portable {
namespace {

enum class Result { Same, ToFloat, ToBool };

struct UnaryOp {
  Result result;
  uint64_t dtypes;
  Loops loops;
  Loop of_bits = nullptr;  ///< On the bits of float16 and bfloat16.
};

/// Infinite for floating types; 0 with `absolute(x) == 0` excluded for integers.
template <typename T>
constexpr T infinity() {
  return std::is_integral_v<T> ? T(-1) : std::numeric_limits<T>::infinity();
}

template <typename T>
T zero_to_six(T x) {
  return x < 0 ? T(0) : (x > 6 ? T(6) : x);
}

template <typename Op, typename T>
constexpr Loop loop_of(Result result) {
  return result == Result::ToBool ? &unary_loop<Op, T, bool> : &unary_loop<Op, T, T>;
}

using DoubleLoop = void (*)(const double* x, double* y, size_t n);

template <DoubleLoop Isa::* member>
void isa_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  (isa().*member)(static_cast<const double*>(in[0]), static_cast<double*>(out),
                  static_cast<size_t>(n));
}

struct neg_bits {
  static uint16_t apply(uint16_t x) { return x ^ 0x8000u; }
};
struct abs_bits {
  static uint16_t apply(uint16_t x) { return x & 0x7fffu; }
};
constexpr bool kBitsBuilt = !kIsSmall && any_built(ScalarType::Half, ScalarType::BFloat16);

template <typename Op, Result result, typename List, UnaryLoop Isa::* fast>
constexpr UnaryOp make_unary() {
  UnaryOp op{result, List::bits, {}};
  if constexpr (kBitsBuilt && fast == &Isa::neg) {
    op.of_bits = &unary_loop<neg_bits, uint16_t, uint16_t>;
  }
  if constexpr (kBitsBuilt && fast == &Isa::abs) {
    op.of_bits = &unary_loop<abs_bits, uint16_t, uint16_t>;
  }
  if constexpr (result != Result::ToFloat) op.loops.of_long = loop_of<Op, int64_t>(result);
  if constexpr (result == Result::Same && fast != nullptr) {
    op.loops.of_int = loop_of<Op, int32_t>(result);
    op.loops.of_short = loop_of<Op, int16_t>(result);
    op.loops.of_char = loop_of<Op, int8_t>(result);
    op.loops.of_byte = loop_of<Op, uint8_t>(result);
  }
  if constexpr (List::contains(ScalarType::Float)) {
    op.loops.of_double = loop_of<Op, double>(result);
    if constexpr (fast == &Isa::exp) op.loops.of_double = &isa_double_loop<&Isa::exp_double>;
    if constexpr (fast == &Isa::tanh) op.loops.of_double = &isa_double_loop<&Isa::tanh_double>;
    if constexpr (fast == &Isa::erf) op.loops.of_double = &isa_double_loop<&Isa::erf_double>;
    if constexpr (fast == &Isa::sigmoid) {
      op.loops.of_double = &isa_double_loop<&Isa::sigmoid_double>;
    }
    if constexpr (fast != nullptr) {
      op.loops.of_float = &isa_unary_loop<fast>;
    } else {
      op.loops.of_float = loop_of<Op, float>(result);
    }
  }
  return op;
}

Error unary(Context& context, const Tensor& in, const Tensor& out, const UnaryOp& op) {
  const ScalarType from = in.scalar_type();
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, (op.dtypes & dtype_bit(from)) != 0, NotSupported,
            "the operator does not support the dtype of self");
  Map m;
  switch (op.result) {
    case Result::Same:
      ETX_CHECK(context, to == from, InvalidArgument, "out must have the dtype of self");
      m.out_as = wide(from);
      break;
    case Result::ToFloat:
      ETX_CHECK(context, is_floating(to), InvalidArgument, "out must have a floating dtype");
      m.out_as = wide(to);
      m.grain = 8192;
      break;
    case Result::ToBool: m.out_as = ScalarType::Bool; break;
  }
  ScalarType as = op.result == Result::ToBool ? wide(from) : m.out_as;
  m.loop = op.loops[as];
  if (const Loop narrow = op.loops.narrow(from); narrow != nullptr) {
    m.loop = narrow;
    m.out_as = as = from;
  }
  if (op.of_bits != nullptr && (from == ScalarType::Half || from == ScalarType::BFloat16)) {
    m.loop = op.of_bits;
    m.out_as = as = from;
  }
  const Operand operands[] = {Operand(in, as)};
  return map(context, operands, out, m);
}

#define ETX_UNARY(op, dtypes, result, expression, fast)                                 \
  struct op##_op {                                                                      \
    template <typename T>                                                               \
    static auto apply(T x) {                                                            \
      return expression;                                                                \
    }                                                                                   \
  };                                                                                    \
  Error op##_out(Context& context, const Tensor& self, Tensor& out) {                   \
    static constexpr UnaryOp kOp = make_unary<op##_op, Result::result, dtypes, fast>(); \
    return unary(context, self, out, kOp);                                              \
  }
#include "ops/elementwise/unary.def"
#undef ETX_UNARY

struct abs_op {
  template <typename T>
  static auto apply(T x) {
    return absolute(x);
  }
};

Error abs_out(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = make_unary<abs_op, Result::Same, Real, &Isa::abs>();
  if (is_complex(self.scalar_type())) return complex_abs(context, self, out);
  return unary(context, self, out, kOp);
}

struct same_op {
  static int64_t apply(int64_t x) { return x; }
};
template <typename T, Rounding to>
void rounding_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  const T* const x = static_cast<const T*>(in[0]);
  if constexpr (std::is_same_v<T, float>) {
    isa().round_float(x, static_cast<T*>(out), static_cast<size_t>(n), to);
  } else {
    isa().round_double(x, static_cast<T*>(out), static_cast<size_t>(n), to);
  }
}

template <Rounding to>
Error rounded(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {Result::Same,
                                  Real::bits,
                                  {&unary_loop<same_op, int64_t, int64_t>,
                                   &rounding_loop<float, to>, &rounding_loop<double, to>}};
  return unary(context, self, out, kOp);
}

struct sin_op {
  static constexpr double kAhead = 0;
  template <typename T>
  static T apply(T x) {
    return std::sin(x);
  }
};
struct cos_op {
  static constexpr double kAhead = 0.5;
  template <typename T>
  static T apply(T x) {
    return std::cos(x);
  }
};

/// Op; of what Isa leaves as it is by libm.
template <typename Op, typename T>
void circular_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  const T* const x = static_cast<const T*>(in[0]);
  T* const y = static_cast<T*>(out);
  bool left;
  if constexpr (std::is_same_v<T, float>) {
    left = isa().circular_float(x, y, static_cast<size_t>(n), Op::kAhead);
  } else {
    left = isa().circular_double(x, y, static_cast<size_t>(n), Op::kAhead);
  }
  for (int64_t i = 0; left && i < n; ++i) {
    if (!(std::fabs(y[i]) <= 2)) y[i] = Op::apply(y[i]);
  }
}

template <typename Op>
Error circular(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {
      Result::ToFloat,
      RealBool::bits,
      {nullptr, kIsSmall ? &unary_loop<Op, float, float> : &circular_loop<Op, float>,
       kIsSmall ? &unary_loop<Op, double, double> : &circular_loop<Op, double>}};
  return unary(context, self, out, kOp);
}

struct invert_op {
  static int64_t apply(int64_t x) { return ~x; }
};

/// ~self; of bool: not self.
Error bitwise_not_out(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {
      Result::Same, Integral::bits, {&unary_loop<invert_op, int64_t, int64_t>, nullptr, nullptr}};
  if (self.scalar_type() == ScalarType::Bool) return logical_not_out(context, self, out);
  return unary(context, self, out, kOp);
}

constexpr uint64_t kAbs = Real::bits | dtype_bit(ScalarType::ComplexHalf) |
                          dtype_bit(ScalarType::ComplexFloat) |
                          dtype_bit(ScalarType::ComplexDouble);

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::abs.out", abs_out, kAbs | kInPlace),
    ETX_KERNEL("aten::bitwise_not.out", bitwise_not_out, IntegralBool::bits | kInPlace),
    ETX_KERNEL("aten::ceil.out", rounded<Rounding::Up>, Real::bits | kInPlace),
    ETX_KERNEL("aten::floor.out", rounded<Rounding::Down>, Real::bits | kInPlace),
    ETX_KERNEL("aten::round.out", rounded<Rounding::Nearest>, Real::bits | kInPlace),
    ETX_KERNEL("aten::trunc.out", rounded<Rounding::ToZero>, Real::bits | kInPlace),
    ETX_KERNEL("aten::cos.out", circular<cos_op>, RealBool::bits | kInPlace),
    ETX_KERNEL("aten::sin.out", circular<sin_op>, RealBool::bits | kInPlace),
#define ETX_UNARY(op, dtypes, result, expression, fast) \
  ETX_KERNEL("aten::" #op ".out", op##_out, dtypes::bits | kInPlace),
#include "ops/elementwise/unary.def"
#undef ETX_UNARY
};

}  // namespace

ETX_KERNEL_TABLE(unary_kernels, kRows);

}  // namespace etx::portable
