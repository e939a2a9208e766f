// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ARITHMETIC_H_
#define ETX_PORTABLE_ARITHMETIC_H_

#include "core/broadcast.h"
#include "core/dispatch.h"
#include "core/loops.h"
#include "core/map.h"

namespace etx::portable {

/// Kinds of numbers, in the order of type promotion.
enum class Kind { Bool, Int, Float };

constexpr Kind kind_of(ScalarType type) {
  if (type == ScalarType::Bool) return Kind::Bool;
  return is_floating(type) ? Kind::Float : Kind::Int;
}
inline Kind kind_of(const Scalar& value) {
  if (value.is_bool()) return Kind::Bool;
  return value.is_floating() ? Kind::Float : Kind::Int;
}

/// A tensor or a number as an argument of an operator; the argument must outlive it.
struct Side {
  Side(const Tensor& t) : tensor(&t), kind(kind_of(t.scalar_type())) {}
  Side(const Scalar& s) : scalar(&s), kind(kind_of(s)) {}

  bool is_listed() const { return tensor == nullptr || RealBool::contains(tensor->scalar_type()); }
  /// True for numbers and tensors of rank 0, which promote only across kinds.
  bool is_single() const { return tensor == nullptr || tensor->dim() == 0; }
  bool is_one_element() const { return tensor == nullptr || tensor->numel() == 1; }
  /// Converted to `first`, then seen in the wider `as`; `storage` must outlive the operand.
  Operand operand(ScalarType first, ScalarType as, Element& storage) const {
    if (tensor != nullptr) return Operand(*tensor, first, as);
    const Element converted = cast(*scalar, first);
    cast(converted.bytes, first, 1, storage.bytes, as, 1);
    return Operand(storage, as);
  }

  const Tensor* tensor = nullptr;
  const Scalar* scalar = nullptr;
  Kind kind;
};

/// out = f(a, b), computed in the wide type of out's dtype, which must be one the inputs can be
/// cast to. Both are converted to out's dtype first, as ATen does. `user` goes to the loop.
Error arithmetic(Context& context, const Side& a, const Side& b, const Tensor& out,
                 const Loops& loops, const void* user = nullptr);

/// Runs the loop at once when both tensors and out have one layout and a dtype that needs no
/// conversion, and so few elements that checks dominate the call. False: nothing was done.
inline bool run_few(const Tensor& a, const Tensor& b, const Tensor& out, const Loops& loops) {
  constexpr int64_t kFew = 4096;
  const ScalarType dtype = out.scalar_type();
  const Loop loop = loops[dtype];
  if (loop == nullptr || a.scalar_type() != dtype || b.scalar_type() != dtype ||
      out.numel() > kFew || !same_layout(a, out) || !same_layout(b, out)) {
    return false;
  }
  const void* const data[] = {a.const_data_ptr(), b.const_data_ptr()};
  loop(nullptr, data, 0, out.mutable_data_ptr(), out.numel());
  return true;
}

/// Does the first of y[i] = f(a[i], b[i]), those that fill vectors, and returns how many; `left`
/// where some y[i] mean nothing.
using PairLoop = size_t (*)(const float* a, const float* b, float* y, size_t n, bool& left);
/// All pairs, in blocks; what the loop leaves by `one`.
void pairs_in_blocks(const void* const* in, uint32_t scalars, void* out, int64_t n, PairLoop loop,
                     float (*one)(float, float));
template <typename Op, PairLoop loop>
void pair_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  pairs_in_blocks(in, scalars, out, n, loop, &Op::template apply<float>);
}

template <typename Op>
constexpr Loops loops_of() {
  return {&binary_loop<Op, int64_t, int64_t>, &binary_loop<Op, float, float>,
          &binary_loop<Op, double, double>};
}
template <typename Op>
constexpr Loops floating_loops() {
  return {nullptr, &binary_loop<Op, float, float>, &binary_loop<Op, double, double>};
}
template <typename Op>
constexpr Loops integral_loops() {
  return {&binary_loop<Op, int64_t, int64_t>, nullptr, nullptr};
}

/// The same with vectors for float32.
template <typename Op, BinaryLoop Isa::* vv, ScalarLoop Isa::* vs = nullptr,
          ScalarLoop Isa::* sv = nullptr>
constexpr Loops with_isa(Loops loops) {
  loops.of_float = &isa_binary_loop<Op, vv, vs, sv>;
  return loops;
}
/// The same where a second operand of one element is not rounded first.
constexpr Loops with_wide_single(Loops loops) {
  loops.wide_single = true;
  return loops;
}

}  // namespace etx::portable

/// Defines `name##_op`, whose `apply(T a, T b)` is `expression`.
#define ETX_OP(name, expression)         \
  struct name##_op {                     \
    template <typename T>                \
    static T apply(T a, T b) {           \
      return static_cast<T>(expression); \
    }                                    \
  }

#endif  // ETX_PORTABLE_ARITHMETIC_H_
