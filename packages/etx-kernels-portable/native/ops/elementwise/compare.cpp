// SPDX-License-Identifier: BSD-3-Clause
/// Comparisons and logic, whose results are bools.

#include <optional>

#include "core/complex.h"
#include "core/min_max.h"
#include "ops/elementwise/arithmetic.h"

namespace etx::portable {
namespace {

/// The dtype to which ATen promotes both sides before it compares them.
ScalarType promote(const Side& a, const Side& b) {
  const Kind kind = max(a.kind, b.kind);
  std::optional<ScalarType> found;
  for (const bool single : {false, true}) {
    for (const Side* side : {&a, &b}) {
      if (side->tensor == nullptr || side->is_single() != single || side->kind != kind) continue;
      const ScalarType type = side->tensor->scalar_type();
      if (!found.has_value() || *found == type) {
        found = type;
      } else if (kind == Kind::Float) {
        const bool any_double = *found == ScalarType::Double || type == ScalarType::Double;
        found = any_double ? ScalarType::Double : ScalarType::Float;
      } else {
        found = ScalarType::Long;
      }
    }
    if (found.has_value()) return *found;
  }
  return kind == Kind::Float ? ScalarType::Float : ScalarType::Long;
}

Error compare(Context& context, const Side& a, const Side& b, const Tensor& out,
              const Loops& loops) {
  ETX_CHECK(context, a.is_listed() && b.is_listed(), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  const ScalarType dtype = promote(a, b);
  Map m;
  m.out_as = ScalarType::Bool;
  const Loop narrow = loops.narrow(dtype);
  const ScalarType as = narrow == nullptr ? wide(dtype) : dtype;
  m.loop = narrow == nullptr ? loops[as] : narrow;
  Element p, q;
  const Operand operands[] = {a.operand(dtype, as, p), b.operand(dtype, as, q)};
  return map(context, operands, out, m);
}

Error logic(Context& context, const Side& a, const Side& b, const Tensor& out, Loop loop) {
  ETX_CHECK(context, a.is_listed() && b.is_listed(), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  Map m;
  m.out_as = ScalarType::Bool;
  m.loop = loop;
  Element p, q;
  const ScalarType first = promote(a, b);
  const Operand operands[] = {a.operand(first, m.out_as, p), b.operand(first, m.out_as, q)};
  return map(context, operands, out, m);
}

#define ETX_COMPARE(name, op)                                                        \
  struct name##_op {                                                                 \
    template <typename T>                                                            \
    static bool apply(T a, T b) {                                                    \
      return a op b;                                                                 \
    }                                                                                \
  };                                                                                 \
  constexpr Loops name##_loops = with_narrow<name##_op, true, bool>(                 \
      {&binary_loop<name##_op, int64_t, bool>, &binary_loop<name##_op, float, bool>, \
       &binary_loop<name##_op, double, bool>});                                      \
  ETX_COMPARED(name, self, other, name##_loops)
#define ETX_COMPARED(name, left, right, loops)                                               \
  Error name##_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) { \
    return compare(context, left, right, out, loops);                                        \
  }                                                                                          \
  Error name##_scalar_out(Context& context, const Tensor& self, Scalar other, Tensor& out) { \
    return compare(context, left, right, out, loops);                                        \
  }
ETX_COMPARE(eq, ==)
ETX_COMPARE(ne, !=)
ETX_COMPARE(lt, <)
ETX_COMPARE(le, <=)
ETX_COMPARED(gt, other, self, lt_loops)
ETX_COMPARED(ge, other, self, le_loops)
#undef ETX_COMPARED
#undef ETX_COMPARE

#define ETX_EQUAL(name, of_reals, of_scalars, equal)                                         \
  Error name##_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) { \
    const bool any = is_complex(self.scalar_type()) || is_complex(other.scalar_type());      \
    return any ? complex_equal(context, self, other, equal, out)                             \
               : of_reals(context, self, other, out);                                        \
  }                                                                                          \
  Error name##_scalar_out(Context& context, const Tensor& self, Scalar other, Tensor& out) { \
    return is_complex(self.scalar_type()) ? complex_equal(context, self, other, equal, out)  \
                                          : of_scalars(context, self, other, out);           \
  }
ETX_EQUAL(equal, eq_out, eq_scalar_out, true)
ETX_EQUAL(not_equal, ne_out, ne_scalar_out, false)
#undef ETX_EQUAL

#define ETX_LOGIC(name, expression)                                                          \
  struct name##_op {                                                                         \
    static bool apply(bool a, bool b) { return expression; }                                 \
  };                                                                                         \
  Error name##_out(Context& context, const Tensor& self, const Tensor& other, Tensor& out) { \
    return logic(context, self, other, out, &binary_loop<name##_op, bool, bool>);            \
  }
ETX_LOGIC(logical_and, (a & b) != 0)
ETX_LOGIC(logical_or, (a | b) != 0)
ETX_LOGIC(logical_xor, a != b)
#undef ETX_LOGIC

#define ETX_COMPARE(name)                                     \
  ETX_KERNEL("aten::" #name ".Tensor_out", name##_out, kAll), \
      ETX_KERNEL("aten::" #name ".Scalar_out", name##_scalar_out, kAll)

constexpr uint64_t kAll = RealBool::bits | kInPlace;
constexpr uint64_t kEqual = kAll | dtype_bit(ScalarType::ComplexHalf) |
                            dtype_bit(ScalarType::ComplexFloat) |
                            dtype_bit(ScalarType::ComplexDouble);

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::eq.Tensor_out", equal_out, kEqual),
    ETX_KERNEL("aten::eq.Scalar_out", equal_scalar_out, kEqual),
    ETX_KERNEL("aten::ne.Tensor_out", not_equal_out, kEqual),
    ETX_KERNEL("aten::ne.Scalar_out", not_equal_scalar_out, kEqual),
    ETX_COMPARE(lt),
    ETX_COMPARE(le),
    ETX_COMPARE(gt),
    ETX_COMPARE(ge),
    ETX_KERNEL("aten::logical_and.out", logical_and_out, kAll),
    ETX_KERNEL("aten::logical_or.out", logical_or_out, kAll),
    ETX_KERNEL("aten::logical_xor.out", logical_xor_out, kAll),
};
#undef ETX_COMPARE

}  // namespace

ETX_KERNEL_TABLE(compare_kernels, kRows);

}  // namespace etx::portable
