// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_READ_H_
#define ETX_XNNPACK_READ_H_

#include "blob.h"

namespace etx_fbs::xnnpack {
struct Node;
struct Value;
}  // namespace etx_fbs::xnnpack

namespace etx::xnnpack {

/// Reads a value of the blob, and finds its bytes and scales if it is a constant.
Error read_value(const Blob& blob, etx_init_context* context, const etx_fbs::xnnpack::Value& stored,
                 Value* value);

/// The type, as XNNPACK's header numbers it, to which an old blob has this input converted, or
/// xnn_datatype_invalid.
xnn_datatype run_time_type(const etx_fbs::xnnpack::Value& stored);

/// Reads a node; inputs and outputs are still ids.
Error read_node(const etx_fbs::xnnpack::Node& stored, Node* node);

/// Checks types, constants and parameters of a node: all that does not depend on sizes.
Error check_node(const Graph& graph, const Node& node);

/// Leaves no clamp to XNNPACK that it would join with the node before it: its numbers overwrite
/// that node's padding, and ranges that do not overlap become one that is empty.
/// Errors: MemoryAllocationFailed.
Error join_clamps(Graph* graph);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_READ_H_
