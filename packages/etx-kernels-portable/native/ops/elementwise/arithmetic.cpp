// SPDX-License-Identifier: BSD-3-Clause
#include "ops/elementwise/arithmetic.h"

namespace etx::portable {
namespace {

/// Integers whose result is floating are not rounded to its dtype.
ScalarType first_dtype(const Side& a, const Side& b, ScalarType out) {
  const bool same_kind = a.kind == kind_of(out) || b.kind == kind_of(out);
  return same_kind ? out : wide(out);
}

}  // namespace

Error arithmetic(Context& context, const Side& a, const Side& b, const Tensor& out,
                 const Loops& loops, const void* user) {
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, a.is_listed() && b.is_listed() && RealBool::contains(to), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  ETX_CHECK(context, kind_of(to) >= a.kind && kind_of(to) >= b.kind, InvalidArgument,
            "out must have a dtype that holds those of the inputs");
  Map m;
  m.user = user;
  Element p, q;
  if constexpr (kNarrowBuilt) {
    m.loop = loops.narrow(to);
    m.out_as = to;
    const Operand narrow[] = {a.operand(to, to, p), b.operand(to, to, q)};
    if (m.loop != nullptr) return map(context, narrow, out, m);
  }
  m.out_as = wide(to);
  const bool wide_b = loops.wide_single && b.is_one_element();
  m.loop = wide_b ? loops[m.out_as] : loops.for_dtype(to);
  const ScalarType first = first_dtype(a, b, to);
  const ScalarType first_b = wide_b && is_floating(to) ? m.out_as : first;
  const Operand operands[] = {a.operand(first, m.out_as, p), b.operand(first_b, m.out_as, q)};
  return map(context, operands, out, m);
}

}  // namespace etx::portable
