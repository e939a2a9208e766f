// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_SHAPES_H_
#define ETX_XNNPACK_SHAPES_H_

#include "graph.h"

namespace etx::xnnpack {

/// Follows the sizes of inputs and constants through all nodes. `shapes` has one for each value;
/// those of inputs and constants are given, the others are set.
/// Errors: InvalidArgument (the message names node and value).
Error infer_shapes(const Graph& graph, Shape* shapes);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_SHAPES_H_
