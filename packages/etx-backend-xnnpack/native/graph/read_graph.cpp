// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <xnnpack_generated.h>

#include "read.h"

namespace etx::xnnpack {
namespace {

namespace fbs = etx_fbs::xnnpack;

/// Values by id: the blob's ids may have gaps.
class Ids {
 public:
  Error build(const Graph& graph) {
    ETX_TRY(order_.allocate(graph.num_values));
    for (uint32_t i = 0; i < graph.num_values; ++i) order_[i] = i;
    values_ = graph.values.data();
    std::sort(order_.begin(), order_.end(),
              [this](uint32_t a, uint32_t b) { return values_[a].id < values_[b].id; });
    for (uint32_t i = 1; i < graph.num_values; ++i) {
      if (values_[order_[i - 1]].id != values_[order_[i]].id) continue;
      return fail(Error::InvalidProgram, "two values have the id %u", values_[order_[i]].id);
    }
    return Error::Ok;
  }

  /// The index of a value, or kNone.
  uint32_t find(uint32_t id) const {
    const uint32_t* found =
        std::lower_bound(order_.begin(), order_.end(), id,
                         [this](uint32_t index, uint32_t key) { return values_[index].id < key; });
    return found != order_.end() && values_[*found].id == id ? *found : kNone;
  }

 private:
  Array<uint32_t> order_;
  const Value* values_ = nullptr;
};

Error link_input(const Graph& graph, const Ids& ids, bool may_be_absent, uint32_t* slot,
                 const Node& node) {
  const uint32_t id = *slot;
  if (may_be_absent && id == XNN_INVALID_VALUE_ID) return Error::Ok;
  *slot = ids.find(id);
  if (*slot == kNone) return fail_at(node, Error::InvalidProgram, "there is no value %u", id);
  const Value& value = graph.values[*slot];
  if (value.is_constant() || value.is_input || value.producer != kNone) return Error::Ok;
  return fail_at(node, Error::InvalidProgram, "reads value %u, which nothing before it makes", id);
}

Error link_output(Graph* graph, const Ids& ids, uint32_t index, uint32_t* slot, const Node& node) {
  const uint32_t id = *slot;
  *slot = ids.find(id);
  if (*slot == kNone) return fail_at(node, Error::InvalidProgram, "there is no value %u", id);
  Value& value = graph->values[*slot];
  if (value.is_constant() || value.is_input || value.producer != kNone) {
    return fail_at(node, Error::InvalidProgram,
                   "writes value %u, which is constant, an input or written already", id);
  }
  value.producer = index;
  return Error::Ok;
}

Error link_node(Graph* graph, const Ids& ids, uint32_t index) {
  Node& node = graph->nodes[index];
  const bool has_filter =
      node.kind->form == Form::FullyConnected || node.kind->form == Form::Convolution ||
      node.kind->form == Form::Depthwise || node.kind->form == Form::Deconvolution;
  for (uint32_t i = 0; i < node.num_inputs; ++i) {
    ETX_TRY(link_input(*graph, ids, has_filter && i == 2, &node.inputs[i], node));
  }
  for (uint32_t i = 0; i < node.num_outputs; ++i) {
    ETX_TRY(link_output(graph, ids, index, &node.outputs[i], node));
  }
  return check_node(*graph, node);
}

/// Types that a tensor of the program can have.
bool is_external_type(xnn_datatype type) {
  return type == xnn_datatype_fp32 || type == xnn_datatype_fp16 || type == xnn_datatype_qint8 ||
         type == xnn_datatype_quint8 || type == xnn_datatype_int32;
}

Error link_externals(Graph* graph) {
  ETX_TRY(graph->externals.allocate(graph->num_externals));
  std::fill(graph->externals.begin(), graph->externals.end(), kNone);
  for (uint32_t i = 0; i < graph->num_values; ++i) {
    const Value& value = graph->values[i];
    if (!value.is_input && !value.is_output) continue;
    if (value.external >= graph->num_externals || graph->externals[value.external] != kNone) {
      return fail(Error::InvalidProgram, "value %u: argument %u of %u, or twice the same", value.id,
                  value.external, graph->num_externals);
    }
    graph->externals[value.external] = i;
    if (!is_external_type(value.type)) {
      return fail(Error::NotSupported, "value %u: an argument of type %s", value.id,
                  name_of(value.type));
    }
  }
  return Error::Ok;
}

Error check_outputs(const Graph& graph) {
  for (const Value& value : graph.values) {
    if (value.is_output && value.producer == kNone) {
      return fail(Error::InvalidProgram, "value %u: an output that no node makes", value.id);
    }
  }
  return Error::Ok;
}

/// Leaves out nodes that no output depends on: XNNPACK aborts when it meets them.
void drop_dead_nodes(Graph* graph) {
  for (Value& value : graph->values) value.is_used = value.is_input || value.is_output;
  for (uint32_t i = graph->num_nodes; i-- > 0;) {
    const Node& node = graph->nodes[i];
    bool is_live = false;
    for (uint32_t k = 0; k < node.num_outputs; ++k) is_live |= graph->output(node, k).is_used;
    for (uint32_t k = 0; is_live && k < node.num_outputs; ++k) {
      graph->values[node.outputs[k]].is_used = true;
    }
    for (uint32_t k = 0; is_live && k < node.num_inputs; ++k) {
      if (node.inputs[k] != kNone) graph->values[node.inputs[k]].is_used = true;
    }
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->num_nodes; ++i) {
    const Node& node = graph->nodes[i];
    if (!graph->output(node).is_used) continue;
    for (uint32_t k = 0; k < node.num_outputs; ++k) graph->values[node.outputs[k]].producer = count;
    graph->nodes[count++] = node;
  }
  graph->num_nodes = count;
}

/// An input that an old blob quantizes: the tensor gets a value and a node of its own.
Error quantize_input(Graph* graph, uint32_t index, xnn_datatype type) {
  Value& value = graph->values[index];
  if (!value.is_input || value.type != xnn_datatype_fp32 || value.shape.rank == 0 ||
      (type != xnn_datatype_qint8 && type != xnn_datatype_qdint8)) {
    return fail(Error::NotSupported, "value %u: quantized at run time to %s", value.id,
                name_of(type));
  }
  Value& source = graph->values[graph->num_values];
  source = value;
  source.id = XNN_INVALID_VALUE_ID - 1 - graph->num_nodes;
  value.is_input = false;
  value.external = kNone;
  value.type = xnn_datatype_qdint8;
  value.num_nonbatch = 1;
  value.producer = graph->num_nodes;
  Node& node = graph->nodes[graph->num_nodes];
  node.kind = find_kind(static_cast<uint8_t>(fbs::Operator::Convert));
  node.place = kNone;
  node.num_inputs = node.num_outputs = 1;
  node.inputs[0] = graph->num_values;
  node.outputs[0] = index;
  node.lowest = -INFINITY;
  node.highest = INFINITY;
  ++graph->num_values;
  ++graph->num_nodes;
  return Error::Ok;
}

template <typename List>
uint32_t length(const List* list) {
  return list == nullptr ? 0 : list->size();
}

uint32_t count_quantized_inputs(const fbs::Graph& stored) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < length(stored.values()); ++i) {
    count += run_time_type(*stored.values()->Get(i)) != xnn_datatype_invalid;
  }
  return count;
}

Error read_values(const Blob& blob, etx_init_context* context, Graph* graph) {
  const uint32_t count = length(blob.graph->values());
  for (uint32_t i = 0; i < count; ++i) {
    ETX_TRY(read_value(blob, context, *blob.graph->values()->Get(i), &graph->values[i]));
  }
  graph->num_values = count;
  for (uint32_t i = 0; i < count; ++i) {
    const xnn_datatype type = run_time_type(*blob.graph->values()->Get(i));
    if (type != xnn_datatype_invalid) ETX_TRY(quantize_input(graph, i, type));
  }
  return Error::Ok;
}

}  // namespace

Error read_graph(const Blob& blob, etx_init_context* context, Graph* graph) {
  const fbs::Graph& stored = *blob.graph;
  const uint32_t added = count_quantized_inputs(stored);
  ETX_TRY(graph->values.allocate(size_t{length(stored.values())} + added));
  ETX_TRY(graph->nodes.allocate(size_t{length(stored.nodes())} + added));
  graph->num_externals = stored.num_externals();
  if (graph->num_externals > kMaxExternals) {
    return fail(Error::InvalidProgram, "%u arguments, expected at most 4096", graph->num_externals);
  }
  ETX_TRY(read_values(blob, context, graph));
  ETX_TRY(link_externals(graph));
  Ids ids;
  ETX_TRY(ids.build(*graph));
  for (uint32_t i = 0; i < length(stored.nodes()); ++i) {
    Node& node = graph->nodes[graph->num_nodes];
    node.place = i;
    ETX_TRY(read_node(*stored.nodes()->Get(i), &node));
    ETX_TRY(link_node(graph, ids, graph->num_nodes));
    ++graph->num_nodes;
  }
  ETX_TRY(check_outputs(*graph));
  drop_dead_nodes(graph);
  if (graph->num_nodes == 0) return fail(Error::InvalidProgram, "the graph has no output");
  return join_clamps(graph);
}

}  // namespace etx::xnnpack
