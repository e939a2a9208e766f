// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_TRACING_H_
#define ETX_XNNPACK_TRACING_H_

#include <etx/abi.h>
#include <xnnpack.h>

namespace etx::xnnpack {

/// Tells `context` what XNNPACK measured of its operators in the last invocation, which began at
/// `start`: microseconds, one after the other. The runtime was made with XNN_FLAG_BASIC_PROFILING.
void trace_operators(xnn_runtime_t runtime, etx_context* context, uint64_t start);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_TRACING_H_
