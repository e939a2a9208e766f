// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_LAYOUT_H_
#define ETX_NATIVE_CORE_LAYOUT_H_

#include "state.h"

namespace etx {

/// How many objects of each kind a method needs, and how many bytes these take in its arena.
struct Layout {
  size_t values = 0;
  size_t tensors = 0;
  size_t dims = 0;
  size_t items = 0;
  size_t int_lists = 0;
  size_t slots = 0;
  size_t instructions = 0;
  size_t inputs = 0;
  size_t outputs = 0;
  size_t rebinds = 0;
  size_t operators = 0;
  size_t delegates = 0;
  size_t specs = 0;

  explicit Layout(const fbs::ExecutionPlan& plan);
  size_t bytes() const;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_LAYOUT_H_
