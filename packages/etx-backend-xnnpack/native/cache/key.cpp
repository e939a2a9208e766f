// SPDX-License-Identifier: BSD-3-Clause
#include "key.h"

#include <cstdio>
#include <type_traits>

#include "xnnpack/hardware-config.h"

namespace etx::xnnpack {
namespace {

static_assert(std::is_trivially_copyable_v<WeightKey>, "keys are compared as bytes");
static_assert(sizeof(WeightKey) % 8 == 0 && sizeof(Window) % 8 == 4, "see padding");

bool packs(const Node& node) {
  switch (node.kind->form) {
    case Form::FullyConnected:
    case Form::Convolution:
    case Form::MatrixMultiply: return true;
    default: return false;
  }
}

const Value* value_at(const Graph& graph, const Node& node, uint32_t i) {
  if (i >= node.num_inputs || node.inputs[i] == kNone) return nullptr;
  return &graph.values[node.inputs[i]];
}

Digest bytes_of(const Value* value) {
  if (value == nullptr || value->data == nullptr) return {0, 0};
  return digest_of(value->data, size_of_constant(*value));
}

Digest scales_of(const Value* value) {
  if (value == nullptr || value->scales == nullptr) return {0, 0};
  const size_t item = value->type == xnn_datatype_qbint4 ? sizeof(uint16_t) : sizeof(float);
  return digest_of(value->scales, value->num_scales * item);
}

}  // namespace

const Node* find_packing_node(const Graph& graph, const void* kernel, const void* bias) {
  const Node* found = nullptr;
  WeightKey first;
  for (uint32_t i = 0; i < graph.num_nodes; ++i) {
    const Node& node = graph.nodes[i];
    if (!packs(node)) continue;
    const Value* filter = value_at(graph, node, 1);
    const Value* own = value_at(graph, node, 2);
    if (filter == nullptr || !filter->is_constant() || filter->data != kernel) continue;
    if (bias != nullptr && (own == nullptr || own->data != bias)) continue;
    WeightKey key;
    describe(graph, node, 0, &key);
    if (found != nullptr && std::memcmp(&first, &key, sizeof(key)) != 0) return nullptr;
    if (found == nullptr) std::memcpy(&first, &key, sizeof(key));
    found = &node;
  }
  return found;
}

void describe(const Graph& graph, const Node& node, uint32_t seed, WeightKey* key) {
  std::memset(static_cast<void*>(key), 0, sizeof(*key));
  std::snprintf(key->build, sizeof(key->build), "%s", ETX_XNNPACK_BUILD);
  const struct xnn_hardware_config* hardware = xnn_init_hardware_config();
  if (hardware != nullptr) {
    const Digest digest = digest_of(hardware, sizeof(*hardware));
    key->hardware[0] = digest.low;
    key->hardware[1] = digest.high;
  }
  key->seed = seed;
  key->form = static_cast<uint64_t>(node.kind->form);
  key->operation = static_cast<uint64_t>(node.kind->operation);
  key->kind_flags = node.kind->flags;
  key->flags = node.flags;
  key->window = node.window;
  const Value* values[] = {value_at(graph, node, 0), value_at(graph, node, 1),
                           value_at(graph, node, 2), &graph.output(node)};
  for (int i = 0; i < 4; ++i) {
    if (values[i] == nullptr) continue;
    key->types[i] = 1 + static_cast<uint64_t>(values[i]->type);
    key->scales[i] = static_cast<double>(values[i]->scale);
    key->zero_points[i] = values[i]->zero_point;
  }
  const Value& filter = *values[1];
  key->rank = filter.shape.rank;
  for (uint32_t i = 0; i < filter.shape.rank; ++i) key->sizes[i] = filter.shape.sizes[i];
  key->channel_dim = filter.channel_dim;
  key->group_size = filter.group_size;
  key->bias = bytes_of(values[2]);
  key->filter_scales = scales_of(&filter);
  key->bias_scales = scales_of(values[2]);
}

}  // namespace etx::xnnpack
