// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_DEFINE_H_
#define ETX_XNNPACK_DEFINE_H_

#include "graph.h"

namespace etx::xnnpack {

/// The error that stands for a status of XNNPACK, and its name.
Error error_of(xnn_status status);
const char* name_of(xnn_status status);

/// Describes the graph to XNNPACK: values of these shapes, then nodes. `subgraph` has
/// `graph.num_externals` reserved ids. What constants point at must outlive what is made of it.
/// Errors: those of XNNPACK, with node or value.
Error define_graph(const Graph& graph, const Shape* shapes, xnn_subgraph_t subgraph);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_DEFINE_H_
