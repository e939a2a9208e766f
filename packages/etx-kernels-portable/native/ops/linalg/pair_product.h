// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PAIR_PRODUCT_H_
#define ETX_PORTABLE_PAIR_PRODUCT_H_

/// Products of bfloat16 on processors with dot products of it, summed in float32.

#include <etx/kernel.h>

#include "isa/isa.h"
#include "isa/pairs.h"
#include "selection.h"

namespace etx::portable {

/// The loops for such a product, or null where it is not one: of an odd depth, or on another
/// processor.
inline const Pairs* pairs_for(ScalarType type, int64_t depth) {
  if constexpr (!kIsSmall && is_built(ScalarType::BFloat16)) {
    const bool fits = type == ScalarType::BFloat16 && depth > 0 && depth % 2 == 0;
    return fits ? pairs() : nullptr;
  } else {
    return nullptr;
  }
}

/// y = x w^T + bias: x is m x k, w is n x k, bias (n values) may be null.
Error multiply_weight_pairs(Context& context, const void* x, const void* w, const float* bias,
                            float* y, int64_t m, int64_t k, int64_t n);

/// c = a b + bias for `batch` row-major matrices that follow each other; bias has one value per
/// row or is null.
Error multiply_pairs(Context& context, const Pairs& pairs, const void* a, const void* b,
                     const float* bias, float* c, int64_t batch, int64_t m, int64_t k, int64_t n);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PAIR_PRODUCT_H_
