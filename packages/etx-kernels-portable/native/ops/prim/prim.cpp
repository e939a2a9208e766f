// SPDX-License-Identifier: BSD-3-Clause
/// Operators on scalar slots, for symbolic sizes and control flow. No tensor arithmetic.

#include <cmath>
#include <cstring>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/element.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

bool either_floating(Scalar a, Scalar b) { return a.is_floating() || b.is_floating(); }

int64_t wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return wrap(0 - bits(a));
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

/// Rounds to an integer slot; fails where int64 does not hold the number.
Error set_integer(Context& context, double value, EValue& out) {
  ETX_CHECK(context, value >= -9223372036854775808.0 && value < 9223372036854775808.0,
            InvalidArgument, "the number must fit into an int64");
  out.set(static_cast<int64_t>(value));
  return Error::Ok;
}

#define ETX_ARITHMETIC(name, expression)                               \
  Error name(Context&, Scalar x, Scalar y, EValue& out) {              \
    const auto f = [](auto a, auto b) { return expression; };          \
    if (either_floating(x, y)) {                                       \
      out.set(static_cast<double>(f(x.to<double>(), y.to<double>()))); \
    } else {                                                           \
      out.set(wrap(f(bits(x.to<int64_t>()), bits(y.to<int64_t>()))));  \
    }                                                                  \
    return Error::Ok;                                                  \
  }
ETX_ARITHMETIC(add, a + b)
ETX_ARITHMETIC(sub, a - b)
ETX_ARITHMETIC(mul, a* b)
#undef ETX_ARITHMETIC

#define ETX_COMPARISON(name, op)                                         \
  Error name(Context&, Scalar a, Scalar b, EValue& out) {                \
    out.set(either_floating(a, b) ? a.to<double>() op b.to<double>()     \
                                  : a.to<int64_t>() op b.to<int64_t>()); \
    return Error::Ok;                                                    \
  }
ETX_COMPARISON(eq, ==)
ETX_COMPARISON(gt, >)
ETX_COMPARISON(lt, <)
ETX_COMPARISON(ge, >=)
ETX_COMPARISON(le, <=)
#undef ETX_COMPARISON

void copy_scalar(Scalar value, EValue& out) {
  if (value.is_floating()) {
    out.set(value.to<double>());
  } else if (value.is_bool()) {
    out.set(value.to<bool>());
  } else {
    out.set(value.to<int64_t>());
  }
}

Error floordiv(Context& context, Scalar a, Scalar b, EValue& out) {
  if (either_floating(a, b)) {
    out.set(std::floor(a.to<double>() / b.to<double>()));
    return Error::Ok;
  }
  ETX_CHECK(context, b.to<int64_t>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(floor_divide(a.to<int64_t>(), b.to<int64_t>()));
  return Error::Ok;
}

Error mod(Context& context, Scalar a, Scalar b, EValue& out) {
  if (either_floating(a, b)) {
    out.set(modulo(a.to<double>(), b.to<double>()));
    return Error::Ok;
  }
  ETX_CHECK(context, b.to<int64_t>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(modulo(a.to<int64_t>(), b.to<int64_t>()));
  return Error::Ok;
}

Error truediv(Context& context, Scalar a, Scalar b, EValue& out) {
  ETX_CHECK(context, b.to<double>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(a.to<double>() / b.to<double>());
  return Error::Ok;
}

Error sym_max(Context&, Scalar a, Scalar b, EValue& out) {
  if (either_floating(a, b)) {
    out.set(std::fmax(a.to<double>(), b.to<double>()));
  } else {
    copy_scalar(a.to<int64_t>() >= b.to<int64_t>() ? a : b, out);
  }
  return Error::Ok;
}

Error sym_min(Context&, Scalar a, Scalar b, EValue& out) {
  if (either_floating(a, b)) {
    out.set(std::fmin(a.to<double>(), b.to<double>()));
  } else {
    copy_scalar(a.to<int64_t>() <= b.to<int64_t>() ? a : b, out);
  }
  return Error::Ok;
}

Error neg(Context&, Scalar a, EValue& out) {
  if (a.is_floating()) {
    out.set(-a.to<double>());
  } else {
    out.set(wrap(0 - bits(a.to<int64_t>())));
  }
  return Error::Ok;
}

#define ETX_ROUNDING(name, function)                                                 \
  Error name(Context& context, Scalar a, EValue& out) {                              \
    if (a.is_floating()) return set_integer(context, function(a.to<double>()), out); \
    out.set(a.to<int64_t>());                                                        \
    return Error::Ok;                                                                \
  }
ETX_ROUNDING(ceil, std::ceil)
ETX_ROUNDING(round, std::nearbyint)
ETX_ROUNDING(trunc, std::trunc)
#undef ETX_ROUNDING

Error sym_float(Context&, Scalar a, EValue& out) {
  out.set(a.to<double>());
  return Error::Ok;
}

Error sym_not(Context&, Scalar a, EValue& out) {
  out.set(!a.to<bool>());
  return Error::Ok;
}

Error sym_ite(Context&, Scalar condition, Scalar a, Scalar b, EValue& out) {
  copy_scalar(condition.to<bool>() ? a : b, out);
  return Error::Ok;
}

Error sym_size(Context& context, const Tensor& self, int64_t dim, EValue& out) {
  ETX_CHECK(context, dim >= -self.dim() && dim < self.dim(), InvalidArgument,
            "dim must be at least -rank and less than rank");
  out.set(static_cast<int64_t>(self.size(static_cast<ssize_t>(dim))));
  return Error::Ok;
}

Error sym_numel(Context&, const Tensor& self, EValue& out) {
  out.set(static_cast<int64_t>(self.numel()));
  return Error::Ok;
}

Error local_scalar_dense(Context& context, const Tensor& self, EValue& out) {
  ETX_CHECK(context, self.numel() == 1, InvalidArgument, "self must have exactly one element");
  return dispatch(context, RealBool{}, self.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = load_element(self.const_data_ptr<T>());
    if constexpr (std::is_same_v<T, bool>) {
      out.set(value);
    } else if constexpr (std::is_integral_v<T>) {
      out.set(static_cast<int64_t>(value));
    } else {
      out.set(static_cast<double>(static_cast<Compute<T>>(value)));
    }
    return Error::Ok;
  });
}

/// Gives `out` the shape `size`, where one -1 stands for what is left, and self's memory.
Error et_view(Context& context, const Tensor& self, IntList size, Tensor& out) {
  ETX_CHECK(context, size.size() == static_cast<size_t>(out.dim()), InvalidArgument,
            "out must have one dimension for each item of size");
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  int64_t inferred = -1;
  Checked product = 1;
  Shape shape;
  for (size_t i = 0; i < size.size(); ++i) {
    ETX_CHECK(context, size[i] >= -1, InvalidArgument, "items of size must be at least -1");
    ETX_CHECK(context, size[i] != -1 || inferred < 0, InvalidArgument,
              "only one item of size may be -1");
    if (size[i] == -1) inferred = static_cast<int64_t>(i);
    product *= size[i] == -1 ? 1 : size[i];
    shape.push(size[i]);
  }
  const int64_t known = product.value_or(-1);
  if (inferred >= 0) {
    ETX_CHECK(context, known > 0 && self.numel() % known == 0, InvalidArgument,
              "the items of size must divide the number of elements of self");
    shape[static_cast<size_t>(inferred)] = self.numel() / known;
  } else {
    ETX_CHECK(context, known == self.numel(), InvalidArgument,
              "size must have as many elements as self");
  }
  ETX_TRY(resize_out(context, out, shape));
  out.impl()->data = self.impl()->data;
  return Error::Ok;
}

/// Grows `to` to index + 1 rows and copies `from` into the last.
Error et_copy_index(Context& context, Tensor& to, const Tensor& from, int64_t index) {
  ETX_CHECK(context, to.scalar_type() == from.scalar_type(), InvalidArgument,
            "to must have the dtype of from");
  ETX_CHECK(context, to.dim() == from.dim() + 1, InvalidArgument,
            "to must have one dimension more than from");
  ETX_CHECK(context, index >= 0 && index < INT32_MAX, InvalidArgument,
            "index must not be negative");
  ETX_CHECK(context, to.is_contiguous() && from.is_contiguous(), NotSupported,
            "to and from must be contiguous");
  Shape shape;
  shape.push(index + 1);
  for (ssize_t d = 0; d < from.dim(); ++d) shape.push(from.size(d));
  ETX_TRY(resize_out(context, to, shape));
  if (from.nbytes() == 0) return Error::Ok;
  std::memmove(to.mutable_data_ptr<char>() + static_cast<size_t>(index) * from.nbytes(),
               from.const_data_ptr(), from.nbytes());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("executorch_prim::add.Scalar", add),
    ETX_KERNEL("executorch_prim::sub.Scalar", sub),
    ETX_KERNEL("executorch_prim::mul.Scalar", mul),
    ETX_KERNEL("executorch_prim::floordiv.Scalar", floordiv),
    ETX_KERNEL("executorch_prim::floordiv.int", floordiv),
    ETX_KERNEL("executorch_prim::truediv.Scalar", truediv),
    ETX_KERNEL("executorch_prim::mod.Scalar", mod),
    ETX_KERNEL("executorch_prim::mod.int", mod),
    ETX_KERNEL("executorch_prim::eq.Scalar", eq),
    ETX_KERNEL("executorch_prim::gt.Scalar", gt),
    ETX_KERNEL("executorch_prim::lt.Scalar", lt),
    ETX_KERNEL("executorch_prim::ge.Scalar", ge),
    ETX_KERNEL("executorch_prim::le.Scalar", le),
    ETX_KERNEL("executorch_prim::sym_max.Scalar", sym_max),
    ETX_KERNEL("executorch_prim::sym_min.Scalar", sym_min),
    ETX_KERNEL("executorch_prim::neg.Scalar", neg),
    ETX_KERNEL("executorch_prim::ceil.Scalar", ceil),
    ETX_KERNEL("executorch_prim::round.Scalar", round),
    ETX_KERNEL("executorch_prim::trunc.Scalar", trunc),
    ETX_KERNEL("executorch_prim::sym_float.Scalar", sym_float),
    ETX_KERNEL("executorch_prim::sym_int.Scalar", trunc),
    ETX_KERNEL("executorch_prim::sym_not.Scalar", sym_not),
    ETX_KERNEL("executorch_prim::sym_ite.Scalar", sym_ite),
    ETX_KERNEL("executorch_prim::et_view.default", et_view, kAnyDtype),
    ETX_KERNEL("executorch_prim::et_copy_index.tensor", et_copy_index, kAnyDtype),
    ETX_KERNEL("aten::sym_size.int", sym_size, kAnyDtype),
    ETX_KERNEL("aten::sym_numel", sym_numel, kAnyDtype),
    ETX_KERNEL("aten::_local_scalar_dense", local_scalar_dense, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(prim_kernels, kRows);

}  // namespace etx::portable
