// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_TRACING_H_
#define ETX_XNNPACK_TRACING_H_

#include <etx/abi.h>
#include <xnnpack.h>

#include "array.h"

namespace etx::xnnpack {

/// Tells what XNNPACK measured of the operators of a runtime made with XNN_FLAG_BASIC_PROFILING.
class OperatorTracer {
 public:
  /// The operators may be others from now on.
  void forget() { ends_.release(); }

  /// Tells `context` of the last invocation, which began at `start`: microseconds, one after the
  /// other.
  void tell(xnn_runtime_t runtime, etx_context* context, uint64_t start);

 private:
  bool learn(xnn_runtime_t runtime);

  Array<uint64_t> times_;
  /// The names with their numbers, each ending with 0, and where each ends.
  Array<char> labels_;
  Array<size_t> ends_;
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_TRACING_H_
