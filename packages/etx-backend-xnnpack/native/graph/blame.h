// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_BLAME_H_
#define ETX_XNNPACK_BLAME_H_

#include "graph.h"

namespace etx::xnnpack {

/// The failure for a graph that XNNPACK made no runtime of, with `status`: names the first node
/// that it does not take, found by making runtimes of the graph's first nodes.
Error blame_node(const Graph& graph, const Shape* shapes, xnn_status status);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_BLAME_H_
