// SPDX-License-Identifier: BSD-3-Clause
#include "ops/elementwise/arithmetic.h"

#include <cstring>

namespace etx::portable {
namespace {

/// Integers whose result is floating are not rounded to its dtype.
ScalarType first_dtype(const Side& a, const Side& b, ScalarType out) {
  const bool same_kind = a.kind == kind_of(out) || b.kind == kind_of(out);
  return same_kind ? out : wide(out);
}

constexpr size_t kBlock = 256;

/// A block of the number x.
const float* fill(float* block, float x, size_t n) {
  for (size_t i = 0; i < minimum(n, kBlock); ++i) block[i] = x;
  return block;
}

}  // namespace

void pairs_in_blocks(const void* const* in, uint32_t scalars, void* out, int64_t n, PairLoop loop,
                     float (*one)(float, float)) {
  const float* a = static_cast<const float*>(in[0]);
  const float* b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  const auto all = static_cast<size_t>(n);
  float same_a[kBlock], same_b[kBlock], to[kBlock];
  const size_t steps[] = {(scalars & 1u) != 0 ? 0u : 1u, (scalars & 2u) != 0 ? 0u : 1u};
  if (steps[0] == 0) a = fill(same_a, *a, all);
  if (steps[1] == 0) b = fill(same_b, *b, all);
  for (size_t from = 0; from < all; from += kBlock) {
    const float* const p = a + from * steps[0];
    const float* const q = b + from * steps[1];
    const size_t count = minimum(all - from, kBlock);
    bool left = false;
    const size_t done = loop(p, q, to, count, left);
    for (size_t i = left ? 0 : done; i < count; ++i) to[i] = one(p[i], q[i]);
    std::memcpy(y + from, to, count * sizeof(float));
  }
}

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
