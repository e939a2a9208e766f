// SPDX-License-Identifier: BSD-3-Clause
#include "arithmetic.h"

namespace etx::portable {

Error arithmetic(Context& context, const Side& a, const Side& b, const Tensor& out,
                 const Loops& loops, const void* user) {
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, a.is_listed() && b.is_listed() && RealBool::contains(to), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  ETX_CHECK(context, kind_of(to) >= a.kind && kind_of(to) >= b.kind, InvalidArgument,
            "out must have a dtype that holds those of the inputs");
  Map m;
  m.out_as = wide(to);
  m.loop = loops[m.out_as];
  m.user = user;
  Element p, q;
  const Operand operands[] = {a.operand(m.out_as, p), b.operand(m.out_as, q)};
  return map(context, operands, out, m);
}

}  // namespace etx::portable
