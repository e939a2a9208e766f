// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <xnnpack_generated.h>

#include "read.h"

namespace etx::xnnpack {
namespace {

/// Whether XNNPACK joins a clamp with such a node before it.
bool takes_clamps(const Node& node) {
  switch (node.kind->form) {
    case Form::Clamp:
    case Form::FullyConnected:
    case Form::Convolution:
    case Form::Depthwise:
    case Form::Deconvolution:
    case Form::AveragePool:
    case Form::MaxPool: return true;
    case Form::Binary:
    case Form::GlobalPool: return has_range(node);
    default: return false;
  }
}

/// Joins a clamp with the node that its numbers come from, and becomes a copy, or stays apart.
void join(Node* base, Node* clamp) {
  const float lowest = std::max(base->lowest, clamp->lowest);
  const float highest = std::min(base->highest, clamp->highest);
  clamp->is_apart = !(lowest < highest);
  if (clamp->is_apart) return;
  base->lowest = lowest;
  base->highest = highest;
  clamp->kind = find_kind(static_cast<uint8_t>(etx_fbs::xnnpack::Operator::Copy));
}

}  // namespace

Error join_clamps(Graph* graph) {
  Array<uint32_t> readers;
  Array<uint32_t> bases;
  ETX_TRY(readers.allocate(graph->num_values));
  ETX_TRY(bases.allocate(graph->num_nodes));
  for (uint32_t i = 0; i < graph->num_nodes; ++i) {
    const Node& node = graph->nodes[i];
    for (uint32_t k = 0; k < node.num_inputs; ++k) {
      if (node.inputs[k] != kNone) ++readers[node.inputs[k]];
    }
  }
  for (uint32_t i = 0; i < graph->num_nodes; ++i) {
    Node& node = graph->nodes[i];
    const bool is_clamp = node.kind->form == Form::Clamp;
    bases[i] = takes_clamps(node) ? i : kNone;
    if (!is_clamp && node.kind->form != Form::Copy) continue;
    const Value& in = graph->input(node, 0);
    const bool is_alone = readers[node.inputs[0]] == 1 && !in.is_output;
    const uint32_t base = is_alone && in.producer != kNone ? bases[in.producer] : kNone;
    if (base == kNone) continue;
    if (is_clamp) join(&graph->nodes[base], &node);
    if (!node.is_apart) bases[i] = base;
  }
  return Error::Ok;
}

}  // namespace etx::xnnpack
