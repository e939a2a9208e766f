// SPDX-License-Identifier: BSD-3-Clause
#include "blame.h"

#include <algorithm>
#include <cstdio>

#include "define.h"

namespace etx::xnnpack {
namespace {

constexpr char kHalfNeeds[] =
    "; float16 needs AVX2 on x86-64 and half-precision arithmetic (FEAT_FP16) on Arm";

/// Copies the first `count` nodes; what they make and do not read becomes an output. Errors:
/// NotSupported where that cannot be one; MemoryAllocationFailed.
Error copy_part(const Graph& graph, uint32_t count, Graph* part) {
  ETX_TRY(part->values.allocate(graph.num_values));
  ETX_TRY(part->nodes.allocate(count));
  std::copy_n(graph.values.begin(), graph.num_values, part->values.begin());
  std::copy_n(graph.nodes.begin(), count, part->nodes.begin());
  part->num_values = graph.num_values;
  part->num_nodes = count;
  part->num_externals = graph.num_externals + graph.num_values;
  for (Value& value : part->values) {
    value.is_used = false;
    value.producer = kNone;
  }
  for (const Node& node : part->nodes) {
    for (uint32_t k = 0; k < node.num_inputs; ++k) {
      if (node.inputs[k] != kNone) part->values[node.inputs[k]].is_used = true;
    }
    for (uint32_t k = 0; k < node.num_outputs; ++k) part->values[node.outputs[k]].producer = 0;
  }
  for (uint32_t i = 0; i < part->num_values; ++i) {
    Value& value = part->values[i];
    const bool is_result = value.producer != kNone && !value.is_used;
    if (is_result && value.type == xnn_datatype_qdint8) return Error::NotSupported;
    value.is_used |= is_result;
    if (!is_result || value.is_output) continue;
    value.is_output = true;
    value.external = graph.num_externals + i;
  }
  return Error::Ok;
}

/// What XNNPACK says of a subgraph. The workspace is one of ours: XNNPACK leaks its own when it
/// refuses.
xnn_status try_subgraph(xnn_subgraph_t subgraph) {
  xnn_workspace_t workspace = nullptr;
  xnn_runtime_t runtime = nullptr;
  if (xnn_create_workspace(&workspace) != xnn_status_success) return xnn_status_success;
  const xnn_status status =
      xnn_create_runtime_v4(subgraph, nullptr, workspace, nullptr, 0, &runtime);
  if (status == xnn_status_success) xnn_delete_runtime(runtime);
  xnn_release_workspace(workspace);
  return status;
}

/// What XNNPACK says of the first `count` nodes; `is_known`: whether they are a graph.
xnn_status try_part(const Graph& graph, const Shape* shapes, uint32_t count, bool* is_known) {
  Graph part;
  xnn_subgraph_t subgraph = nullptr;
  *is_known = false;
  if (copy_part(graph, count, &part) != Error::Ok) return xnn_status_success;
  if (xnn_create_subgraph(part.num_externals, 0, &subgraph) != xnn_status_success) {
    return xnn_status_success;
  }
  xnn_status status = xnn_status_success;
  if (define_graph(part, shapes, subgraph) == Error::Ok) {
    *is_known = true;
    status = try_subgraph(subgraph);
  }
  xnn_delete_subgraph(subgraph);
  return status;
}

Error blame(const Graph& graph, const Node& node, xnn_status status) {
  char inputs[96] = "";
  size_t length = 0;
  for (uint32_t k = 0; k < node.num_inputs && length + 32 < sizeof(inputs); ++k) {
    if (node.inputs[k] == kNone) continue;
    const Value& value = graph.input(node, k);
    length +=
        static_cast<size_t>(std::snprintf(inputs + length, sizeof(inputs) - length, "%svalue %u %s",
                                          k == 0 ? "" : ", ", value.id, name_of(value.type)));
  }
  const Value& out = graph.output(node);
  const bool lacks_half =
      status == xnn_status_unsupported_hardware &&
      (out.type == xnn_datatype_fp16 || graph.input(node, 0).type == xnn_datatype_fp16);
  return fail_at(node, error_of(status), "XNNPACK does not take %s -> value %u %s: %s%s", inputs,
                 out.id, name_of(out.type), name_of(status), lacks_half ? kHalfNeeds : "");
}

}  // namespace

Error blame_node(const Graph& graph, const Shape* shapes, xnn_status status) {
  uint32_t taken = 0;
  uint32_t refused = graph.num_nodes;
  while (refused - taken > 1) {
    uint32_t middle = taken + (refused - taken) / 2;
    bool is_known = false;
    xnn_status found = xnn_status_success;
    for (; !is_known && middle < refused; ++middle) {
      found = try_part(graph, shapes, middle, &is_known);
      if (is_known) break;
    }
    if (!is_known) break;
    if (found == xnn_status_success) {
      taken = middle;
    } else {
      refused = middle;
      status = found;
    }
  }
  if (refused == 0) return fail(error_of(status), "XNNPACK takes no graph: %s", name_of(status));
  return blame(graph, graph.nodes[refused - 1], status);
}

}  // namespace etx::xnnpack
