// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INDEX_PLAN_H_
#define ETX_PORTABLE_INDEX_PLAN_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/shape.h"

namespace etx::portable {

/// Reads `count` indices from `index`, `stride` elements apart from element `offset` on, into
/// `indices`. False when one is outside [0, size), or outside [-size, size) with `wrap`; negative
/// ones are wrapped then. `index` is int64 or int32.
bool read_indices(const Tensor& index, int64_t offset, int64_t stride, int64_t count, int64_t size,
                  bool wrap, int64_t* indices);

constexpr bool is_index_type(ScalarType type) {
  return type == ScalarType::Long || type == ScalarType::Int;
}

/// What `self[indices]` means, every index checked.
struct IndexPlan {
  bool indexed[kMaxRank] = {};       ///< Dimensions of self that an index tensor or mask covers.
  Shape entries;                     ///< The shape the index tensors broadcast to.
  int64_t count = 1;                 ///< Elements of `entries`.
  const int64_t* offsets = nullptr;  ///< Of each entry in self, in elements.
  Shape result;                      ///< The shape of `self[indices]`.
  size_t position = 0;               ///< Where the dimensions of `entries` begin in `result`.
};

/// Errors: InvalidArgument for an index outside of self or shapes that do not fit,
/// MemoryAllocationFailed.
Error make_index_plan(Context& context, const Tensor& self, const OptionalTensorList& indices,
                      IndexPlan& plan);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_INDEX_PLAN_H_
