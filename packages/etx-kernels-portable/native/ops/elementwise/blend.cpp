// SPDX-License-Identifier: BSD-3-Clause
#include "ops/elementwise/blend.h"

namespace etx::portable {
namespace {

/// `yes` where `mask` is not 0, without a branch.
template <typename Bits>
Bits pick(uint8_t mask, Bits yes, Bits no) {
  const Bits all = static_cast<Bits>(Bits{0} - static_cast<Bits>(mask != 0));
  return static_cast<Bits>((yes & all) | (no & static_cast<Bits>(~all)));
}

/// y[i] = mask[i] ? a[i] : b[i], any of which may be one element.
template <typename Bits>
void where_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const uint8_t* mask = static_cast<const uint8_t*>(in[0]);
  const Bits* a = static_cast<const Bits*>(in[1]);
  const Bits* b = static_cast<const Bits*>(in[2]);
  Bits* y = static_cast<Bits*>(out);
  const Bits first_a = *a, first_b = *b;
  if (scalars == 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = pick(mask[i], a[i], b[i]);
  } else if (scalars == 2) {
    for (int64_t i = 0; i < n; ++i) y[i] = pick(mask[i], first_a, b[i]);
  } else if (scalars == 4) {
    for (int64_t i = 0; i < n; ++i) y[i] = pick(mask[i], a[i], first_b);
  } else {
    const int64_t steps[] = {scalars & 1u ? 0 : 1, scalars & 2u ? 0 : 1, scalars & 4u ? 0 : 1};
    for (int64_t i = 0; i < n; ++i) {
      y[i] = pick(mask[i * steps[0]], a[i * steps[1]], b[i * steps[2]]);
    }
  }
}

Loop loop_of(size_t size) {
  switch (size) {
    case 1: return &where_loop<uint8_t>;
    case 2: return &where_loop<uint16_t>;
    case 4: return &where_loop<uint32_t>;
    case 8: return &where_loop<uint64_t>;
    default: return nullptr;
  }
}

}  // namespace

Error blend(Context& context, const Tensor& mask, const Operand& a, const Operand& b,
            const Tensor& out) {
  const ScalarType mask_type = mask.scalar_type();
  ETX_CHECK(context, mask_type == ScalarType::Bool || mask_type == ScalarType::Byte,
            InvalidArgument, "the mask must have dtype bool");
  Map m;
  m.loop = loop_of(out.element_size());
  m.out_as = out.scalar_type();
  const Operand operands[] = {Operand(mask, ScalarType::Bool), a, b};
  return map(context, operands, out, m);
}

}  // namespace etx::portable
