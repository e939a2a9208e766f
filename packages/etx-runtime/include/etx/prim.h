// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PRIM_H_
#define ETX_PRIM_H_

/// Operators on scalar slots and on the sizes of tensors, for symbolic sizes and control flow: what
/// every library of kernels has, whatever it computes tensors with. `ETX_PRIM_KERNELS` is their
/// rows for a table.

#include <cmath>
#include <cstring>

#include <etx/kernel.h>

namespace etx::prim {

namespace detail {

/// Errors: InvalidArgument when `out` has no room for the sizes, or another argument is the tensor.
inline Error resize_result(Context& context, const Tensor& out, Span<const int64_t> sizes) {
  bool same = true;
  for (size_t d = 0; d < sizes.size(); ++d) same &= sizes[d] == out.sizes()[d];
  if (same) return Error::Ok;
  ETX_CHECK(context, !context.is_shared(out), InvalidArgument,
            "out must not be an input, or must have the shape of the result");
  ETX_CHECK(context, out.resize(sizes) == Error::Ok, InvalidArgument,
            "out must have the shape of the result, or be dynamic with room for it");
  return Error::Ok;
}

inline bool either_floating(Scalar a, Scalar b) { return a.is_floating() || b.is_floating(); }

inline int64_t wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
inline uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return wrap(0 - bits(a));
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

inline int64_t modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

inline double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

/// Rounds to an integer slot; fails where int64 does not hold the number.
inline Error set_integer(Context& context, double value, EValue& out) {
  ETX_CHECK(context, value >= -9223372036854775808.0 && value < 9223372036854775808.0,
            InvalidArgument, "the number must fit into an int64");
  out.set(static_cast<int64_t>(value));
  return Error::Ok;
}

inline void copy_scalar(Scalar value, EValue& out) {
  if (value.is_floating()) {
    out.set(value.to<double>());
  } else if (value.is_bool()) {
    out.set(value.to<bool>());
  } else {
    out.set(value.to<int64_t>());
  }
}

}  // namespace detail

#define ETX_ARITHMETIC(name, expression)                                                      \
  inline Error name(Context&, Scalar x, Scalar y, EValue& out) {                              \
    const auto f = [](auto a, auto b) { return expression; };                                 \
    if (detail::either_floating(x, y)) {                                                      \
      out.set(static_cast<double>(f(x.to<double>(), y.to<double>())));                        \
    } else {                                                                                  \
      out.set(detail::wrap(f(detail::bits(x.to<int64_t>()), detail::bits(y.to<int64_t>())))); \
    }                                                                                         \
    return Error::Ok;                                                                         \
  }
ETX_ARITHMETIC(add, a + b)
ETX_ARITHMETIC(sub, a - b)
ETX_ARITHMETIC(mul, a* b)
#undef ETX_ARITHMETIC

#define ETX_COMPARISON(name, op)                                                 \
  inline Error name(Context&, Scalar a, Scalar b, EValue& out) {                 \
    out.set(detail::either_floating(a, b) ? a.to<double>() op b.to<double>()     \
                                          : a.to<int64_t>() op b.to<int64_t>()); \
    return Error::Ok;                                                            \
  }
ETX_COMPARISON(eq, ==)
ETX_COMPARISON(gt, >)
ETX_COMPARISON(lt, <)
ETX_COMPARISON(ge, >=)
ETX_COMPARISON(le, <=)
#undef ETX_COMPARISON

inline Error floordiv(Context& context, Scalar a, Scalar b, EValue& out) {
  if (detail::either_floating(a, b)) {
    out.set(std::floor(a.to<double>() / b.to<double>()));
    return Error::Ok;
  }
  ETX_CHECK(context, b.to<int64_t>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(detail::floor_divide(a.to<int64_t>(), b.to<int64_t>()));
  return Error::Ok;
}

inline Error mod(Context& context, Scalar a, Scalar b, EValue& out) {
  if (detail::either_floating(a, b)) {
    out.set(detail::modulo(a.to<double>(), b.to<double>()));
    return Error::Ok;
  }
  ETX_CHECK(context, b.to<int64_t>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(detail::modulo(a.to<int64_t>(), b.to<int64_t>()));
  return Error::Ok;
}

inline Error truediv(Context& context, Scalar a, Scalar b, EValue& out) {
  ETX_CHECK(context, b.to<double>() != 0, InvalidArgument, "the divisor must not be zero");
  out.set(a.to<double>() / b.to<double>());
  return Error::Ok;
}

inline Error sym_max(Context&, Scalar a, Scalar b, EValue& out) {
  if (detail::either_floating(a, b)) {
    out.set(std::fmax(a.to<double>(), b.to<double>()));
  } else {
    detail::copy_scalar(a.to<int64_t>() >= b.to<int64_t>() ? a : b, out);
  }
  return Error::Ok;
}

inline Error sym_min(Context&, Scalar a, Scalar b, EValue& out) {
  if (detail::either_floating(a, b)) {
    out.set(std::fmin(a.to<double>(), b.to<double>()));
  } else {
    detail::copy_scalar(a.to<int64_t>() <= b.to<int64_t>() ? a : b, out);
  }
  return Error::Ok;
}

inline Error neg(Context&, Scalar a, EValue& out) {
  if (a.is_floating()) {
    out.set(-a.to<double>());
  } else {
    out.set(detail::wrap(0 - detail::bits(a.to<int64_t>())));
  }
  return Error::Ok;
}

#define ETX_ROUNDING(name, function)                                                         \
  inline Error name(Context& context, Scalar a, EValue& out) {                               \
    if (a.is_floating()) return detail::set_integer(context, function(a.to<double>()), out); \
    out.set(a.to<int64_t>());                                                                \
    return Error::Ok;                                                                        \
  }
ETX_ROUNDING(ceil, std::ceil)
ETX_ROUNDING(round, std::nearbyint)
ETX_ROUNDING(trunc, std::trunc)
#undef ETX_ROUNDING

inline Error sym_float(Context&, Scalar a, EValue& out) {
  out.set(a.to<double>());
  return Error::Ok;
}

inline Error sym_not(Context&, Scalar a, EValue& out) {
  out.set(!a.to<bool>());
  return Error::Ok;
}

inline Error sym_ite(Context&, Scalar condition, Scalar a, Scalar b, EValue& out) {
  detail::copy_scalar(condition.to<bool>() ? a : b, out);
  return Error::Ok;
}

inline Error sym_size(Context& context, const Tensor& self, int64_t dim, EValue& out) {
  ETX_CHECK(context, dim >= -self.dim() && dim < self.dim(), InvalidArgument,
            "dim must be at least -rank and less than rank");
  out.set(static_cast<int64_t>(self.size(static_cast<ssize_t>(dim))));
  return Error::Ok;
}

inline Error sym_numel(Context&, const Tensor& self, EValue& out) {
  out.set(static_cast<int64_t>(self.numel()));
  return Error::Ok;
}

/// Gives `out` the shape `size`, where one -1 stands for what is left, and self's memory.
inline Error et_view(Context& context, const Tensor& self, IntList size, Tensor& out) {
  ETX_CHECK(context, size.size() == static_cast<size_t>(out.dim()), InvalidArgument,
            "out must have one dimension for each item of size");
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  int64_t shape[kMaxRank] = {};
  int64_t* inferred = nullptr;
  int64_t known = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    ETX_CHECK(context, size[i] >= -1, InvalidArgument, "items of size must be at least -1");
    ETX_CHECK(context, size[i] != -1 || inferred == nullptr, InvalidArgument,
              "only one item of size may be -1");
    shape[i] = size[i];
    if (size[i] == -1) {
      inferred = &shape[i];
    } else {
      known = known < 0 || (size[i] != 0 && known > INT64_MAX / size[i]) ? -1 : known * size[i];
    }
  }
  if (inferred != nullptr) {
    ETX_CHECK(context, known > 0 && self.numel() % known == 0, InvalidArgument,
              "the items of size must divide the number of elements of self");
    *inferred = self.numel() / known;
  } else {
    ETX_CHECK(context, known == self.numel(), InvalidArgument,
              "size must have as many elements as self");
  }
  ETX_TRY(detail::resize_result(context, out, {shape, size.size()}));
  out.impl()->data = self.impl()->data;
  return Error::Ok;
}

/// Gives `out`, which keeps its shape, self's memory from element `offset` on.
inline Error view_at(Context& context, const Tensor& self, int64_t offset, Tensor& out) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, self.is_contiguous() && out.is_contiguous(), NotSupported,
            "self and out must be contiguous");
  ETX_CHECK(context, offset >= 0 && offset <= self.numel() && out.numel() <= self.numel() - offset,
            InvalidArgument, "self must have offset elements and then those of out");
  char* const from = static_cast<char*>(self.impl()->data);
  const size_t before = static_cast<size_t>(offset) * self.element_size();
  out.impl()->data = from == nullptr ? nullptr : from + before;
  out.impl()->capacity = out.numel();
  return Error::Ok;
}

/// Grows `to` to index + 1 rows and copies `from` into the last.
inline Error et_copy_index(Context& context, Tensor& to, const Tensor& from, int64_t index) {
  ETX_CHECK(context, to.scalar_type() == from.scalar_type(), InvalidArgument,
            "to must have the dtype of from");
  ETX_CHECK(context, to.dim() == from.dim() + 1, InvalidArgument,
            "to must have one dimension more than from");
  ETX_CHECK(context, index >= 0 && index < INT32_MAX, InvalidArgument,
            "index must not be negative");
  ETX_CHECK(context, to.is_contiguous() && from.is_contiguous(), NotSupported,
            "to and from must be contiguous");
  int64_t shape[kMaxRank] = {index + 1};
  for (ssize_t d = 0; d < from.dim(); ++d) shape[d + 1] = from.size(d);
  ETX_TRY(detail::resize_result(context, to, {shape, static_cast<size_t>(to.dim())}));
  if (from.nbytes() == 0) return Error::Ok;
  std::memmove(to.mutable_data_ptr<char>() + static_cast<size_t>(index) * from.nbytes(),
               from.const_data_ptr(), from.nbytes());
  return Error::Ok;
}

constexpr uint64_t kAnyDtype = (uint64_t{1} << kNumScalarTypes) - 1;

}  // namespace etx::prim

// clang-format off
#define ETX_PRIM_KERNELS \
  ETX_KERNEL("executorch_prim::add.Scalar", ::etx::prim::add), \
  ETX_KERNEL("executorch_prim::sub.Scalar", ::etx::prim::sub), \
  ETX_KERNEL("executorch_prim::mul.Scalar", ::etx::prim::mul), \
  ETX_KERNEL("executorch_prim::floordiv.Scalar", ::etx::prim::floordiv), \
  ETX_KERNEL("executorch_prim::floordiv.int", ::etx::prim::floordiv), \
  ETX_KERNEL("executorch_prim::truediv.Scalar", ::etx::prim::truediv), \
  ETX_KERNEL("executorch_prim::mod.Scalar", ::etx::prim::mod), \
  ETX_KERNEL("executorch_prim::mod.int", ::etx::prim::mod), \
  ETX_KERNEL("executorch_prim::eq.Scalar", ::etx::prim::eq), \
  ETX_KERNEL("executorch_prim::gt.Scalar", ::etx::prim::gt), \
  ETX_KERNEL("executorch_prim::lt.Scalar", ::etx::prim::lt), \
  ETX_KERNEL("executorch_prim::ge.Scalar", ::etx::prim::ge), \
  ETX_KERNEL("executorch_prim::le.Scalar", ::etx::prim::le), \
  ETX_KERNEL("executorch_prim::sym_max.Scalar", ::etx::prim::sym_max), \
  ETX_KERNEL("executorch_prim::sym_min.Scalar", ::etx::prim::sym_min), \
  ETX_KERNEL("executorch_prim::neg.Scalar", ::etx::prim::neg), \
  ETX_KERNEL("executorch_prim::ceil.Scalar", ::etx::prim::ceil), \
  ETX_KERNEL("executorch_prim::round.Scalar", ::etx::prim::round), \
  ETX_KERNEL("executorch_prim::trunc.Scalar", ::etx::prim::trunc), \
  ETX_KERNEL("executorch_prim::sym_float.Scalar", ::etx::prim::sym_float), \
  ETX_KERNEL("executorch_prim::sym_int.Scalar", ::etx::prim::trunc), \
  ETX_KERNEL("executorch_prim::sym_not.Scalar", ::etx::prim::sym_not), \
  ETX_KERNEL("executorch_prim::sym_ite.Scalar", ::etx::prim::sym_ite), \
  ETX_KERNEL("executorch_prim::et_view.default", ::etx::prim::et_view, ::etx::prim::kAnyDtype), \
  ETX_KERNEL("etx::view_at.default", ::etx::prim::view_at, ::etx::prim::kAnyDtype), \
  ETX_KERNEL("executorch_prim::et_copy_index.tensor", ::etx::prim::et_copy_index, ::etx::prim::kAnyDtype), \
  ETX_KERNEL("aten::sym_size.int", ::etx::prim::sym_size, ::etx::prim::kAnyDtype), \
  ETX_KERNEL("aten::sym_numel", ::etx::prim::sym_numel, ::etx::prim::kAnyDtype)
// clang-format on

#endif  // ETX_PRIM_H_
