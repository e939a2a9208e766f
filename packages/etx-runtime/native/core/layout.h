// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_LAYOUT_H_
#define ETX_NATIVE_CORE_LAYOUT_H_

#include "method_state.h"

namespace etx {

/// The parts of a method's block in its arena: arrays, one after another.
struct Layout {
  enum Part : uint8_t {
    kState,
    kValues,
    kInstructions,
    kInputs,
    kOutputs,
    kRebinds,
    kKernels,
    kDelegates,
    kTensors,
    kItems,
    kIntLists,
    kSlots,
    kSpecs,
    kDims,
    kFlags,
    kNumParts
  };

  explicit Layout(const fbs::ExecutionPlan& plan);
  /// Of one part, aligned to 8. It may overflow unless total_bytes() was had.
  size_t bytes(Part part) const;
  /// More than any allocator has when the parts together overflow.
  size_t total_bytes() const;

  size_t counts[kNumParts] = {};
  bool has_free = false;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_LAYOUT_H_
