// SPDX-License-Identifier: BSD-3-Clause
#include "define.h"

#include <cmath>

namespace etx::xnnpack {
namespace {

/// A node with the ids that XNNPACK gave to its values.
struct Definition {
  xnn_subgraph_t subgraph;
  const Node& node;
  const uint32_t* ids;
  const Graph& graph;

  uint32_t in(uint32_t i) const {
    return node.inputs[i] == kNone ? XNN_INVALID_VALUE_ID : ids[node.inputs[i]];
  }
  uint32_t out(uint32_t i = 0) const { return ids[node.outputs[i]]; }
};

xnn_status define_value(xnn_subgraph_t subgraph, const Value& value, const Shape& shape,
                        uint32_t* id) {
  const uint32_t flags = (value.is_input ? XNN_VALUE_FLAG_EXTERNAL_INPUT : 0u) |
                         (value.is_output ? XNN_VALUE_FLAG_EXTERNAL_OUTPUT : 0u);
  const uint32_t external = value.external;
  switch (value.type) {
    case xnn_datatype_qint8:
    case xnn_datatype_quint8:
    case xnn_datatype_qint32:
      return xnn_define_quantized_tensor_value(subgraph, value.type, value.zero_point, value.scale,
                                               shape.rank, shape.sizes, value.data, external, flags,
                                               id);
    case xnn_datatype_qcint8:
    case xnn_datatype_qcint32:
    case xnn_datatype_qcint4:
      return xnn_define_channelwise_quantized_tensor_value_v2(
          subgraph, value.type, value.type == xnn_datatype_qcint4 ? 8 : 0,
          static_cast<const float*>(value.scales), shape.rank, value.channel_dim, shape.sizes,
          value.data, external, flags, id);
    case xnn_datatype_qbint4:
      return xnn_define_blockwise_quantized_tensor_value(
          subgraph, value.type, 8, static_cast<const uint16_t*>(value.scales), shape.rank, 0,
          value.group_size, shape.sizes, value.data, external, flags, id);
    case xnn_datatype_qdint8:
      return xnn_define_dynamically_quantized_tensor_value(
          subgraph, value.type, shape.rank, value.num_nonbatch, shape.sizes, external, flags, id);
    default:
      return xnn_define_tensor_value(subgraph, value.type, shape.rank, shape.sizes, value.data,
                                     external, flags, id);
  }
}

/// A value like the node's result that only XNNPACK's graph knows.
xnn_status define_between(const Definition& d, uint32_t* id) {
  Value value = d.graph.output(d.node);
  value.external = XNN_INVALID_VALUE_ID;
  value.is_output = false;
  return define_value(d.subgraph, value, value.shape, id);
}

xnn_status define_clamp_of(const Definition& d, uint32_t in) {
  xnn_unary_params params{};
  params.clamp.min = d.node.lowest;
  params.clamp.max = d.node.highest;
  return xnn_define_unary(d.subgraph, xnn_unary_clamp, &params, in, d.out(), 0);
}

/// A clamp; a transpose that moves nothing keeps it apart from what is before it.
xnn_status define_clamp(const Definition& d) {
  if (!d.node.is_apart) return define_clamp_of(d, d.in(0));
  constexpr size_t kSame[kMaxRank] = {0, 1, 2, 3, 4, 5};
  uint32_t between = XNN_INVALID_VALUE_ID;
  xnn_status status = define_between(d, &between);
  if (status != xnn_status_success) return status;
  const size_t rank = d.graph.output(d.node).shape.rank;
  status = xnn_define_static_transpose(d.subgraph, rank, kSame, d.in(0), between, 0);
  return status == xnn_status_success ? define_clamp_of(d, between) : status;
}

xnn_status define_unary(const Definition& d) {
  xnn_unary_params params{};
  switch (d.node.kind->form) {
    case Form::LeakyRelu: params.leaky_relu.negative_slope = d.node.number; break;
    case Form::Elu: params.elu.alpha = d.node.number; break;
    default: break;
  }
  return xnn_define_unary(d.subgraph, static_cast<xnn_unary_operator>(d.node.kind->operation),
                          &params, d.in(0), d.out(), 0);
}

xnn_status define_binary(const Definition& d) {
  const xnn_binary_params params{static_cast<double>(d.node.lowest),
                                 static_cast<double>(d.node.highest)};
  return xnn_define_binary(d.subgraph, static_cast<xnn_binary_operator>(d.node.kind->operation),
                           &params, d.in(0), d.in(1), d.out(), 0);
}

xnn_status define_convolution(const Definition& d) {
  const Window& w = d.node.window;
  if (d.node.kind->form == Form::Depthwise) {
    return xnn_define_depthwise_convolution_2d(
        d.subgraph, w.top, w.right, w.bottom, w.left, w.height, w.width, w.stride_height,
        w.stride_width, w.dilation_height, w.dilation_width, w.group_outputs, w.groups,
        d.node.lowest, d.node.highest, d.in(0), d.in(1), d.in(2), d.out(), 0);
  }
  if (d.node.kind->form == Form::Deconvolution) {
    return xnn_define_deconvolution_2d(
        d.subgraph, w.top, w.right, w.bottom, w.left, w.adjust_height, w.adjust_width, w.height,
        w.width, w.stride_height, w.stride_width, w.dilation_height, w.dilation_width, w.groups,
        w.group_inputs, w.group_outputs, d.node.lowest, d.node.highest, d.in(0), d.in(1), d.in(2),
        d.out(), 0);
  }
  return xnn_define_convolution_2d(
      d.subgraph, w.top, w.right, w.bottom, w.left, w.height, w.width, w.stride_height,
      w.stride_width, w.dilation_height, w.dilation_width, w.groups, w.group_inputs,
      w.group_outputs, d.node.lowest, d.node.highest, d.in(0), d.in(1), d.in(2), d.out(), 0);
}

xnn_status define_pool(const Definition& d) {
  const Window& w = d.node.window;
  switch (d.node.kind->form) {
    case Form::MaxPool:
      return xnn_define_max_pooling_2d(d.subgraph, w.top, w.right, w.bottom, w.left, w.height,
                                       w.width, w.stride_height, w.stride_width, w.dilation_height,
                                       w.dilation_width, d.node.lowest, d.node.highest, d.in(0),
                                       d.out(), 0);
    case Form::AveragePool:
      return xnn_define_average_pooling_2d(d.subgraph, w.top, w.right, w.bottom, w.left, w.height,
                                           w.width, w.stride_height, w.stride_width, d.node.lowest,
                                           d.node.highest, d.in(0), d.out(), 0);
    default:
      return xnn_define_argmax_pooling_2d(d.subgraph, w.top, w.right, w.bottom, w.left, w.height,
                                          w.width, d.in(0), d.out(0), d.out(1), 0);
  }
}

/// The mean over height and width, clamped where a range is given.
xnn_status define_global_pool(const Definition& d) {
  constexpr int64_t kAxes[] = {1, 2};
  uint32_t mean = d.out();
  xnn_status status = has_range(d.node) ? define_between(d, &mean) : xnn_status_success;
  if (status != xnn_status_success) return status;
  status = xnn_define_static_reduce_v2(d.subgraph, xnn_reduce_mean, 2, kAxes, d.in(0), mean,
                                       d.node.flags);
  const bool is_clamped = status == xnn_status_success && has_range(d.node);
  return is_clamped ? define_clamp_of(d, mean) : status;
}

xnn_status define_concatenate(const Definition& d) {
  const auto axis = static_cast<int32_t>(d.node.axis);
  switch (d.node.num_inputs) {
    case 2: return xnn_define_concatenate2(d.subgraph, axis, d.in(0), d.in(1), d.out(), 0);
    case 3: return xnn_define_concatenate3(d.subgraph, axis, d.in(0), d.in(1), d.in(2), d.out(), 0);
    case 4:
      return xnn_define_concatenate4(d.subgraph, axis, d.in(0), d.in(1), d.in(2), d.in(3), d.out(),
                                     0);
    default:
      return xnn_define_concatenate5(d.subgraph, axis, d.in(0), d.in(1), d.in(2), d.in(3), d.in(4),
                                     d.out(), 0);
  }
}

xnn_status define_moved(const Definition& d) {
  const Node& node = d.node;
  switch (node.kind->form) {
    case Form::Transpose:
      return xnn_define_static_transpose(d.subgraph, node.num_list, node.list, d.in(0), d.out(), 0);
    case Form::Reshape:
      return xnn_define_static_reshape(d.subgraph, node.num_list, node.list, d.in(0), d.out(), 0);
    case Form::Resize:
      return xnn_define_static_resize_bilinear_2d(d.subgraph, node.list[0], node.list[1], d.in(0),
                                                  d.out(), node.flags);
    case Form::Pad:
      return xnn_define_static_constant_pad(d.subgraph, node.list, node.list2, node.number, d.in(0),
                                            d.out(), 0);
    case Form::Slice:
      return xnn_define_static_slice(d.subgraph, node.num_list, node.list, node.list2, d.in(0),
                                     d.out(), 0);
    default: return xnn_define_copy(d.subgraph, d.in(0), d.out(), 0);
  }
}

xnn_status define_node(const Definition& d) {
  switch (d.node.kind->form) {
    case Form::Unary:
    case Form::LeakyRelu:
    case Form::Elu: return define_unary(d);
    case Form::Clamp: return define_clamp(d);
    case Form::Convert:
      return xnn_define_unary(d.subgraph, xnn_unary_convert, nullptr, d.in(0), d.out(), 0);
    case Form::Softmax: return xnn_define_softmax(d.subgraph, d.in(0), d.out(), 0);
    case Form::Binary: return define_binary(d);
    case Form::FullyConnected:
      return xnn_define_fully_connected(d.subgraph, d.node.lowest, d.node.highest, d.in(0), d.in(1),
                                        d.in(2), d.out(), d.node.flags);
    case Form::Convolution:
    case Form::Depthwise:
    case Form::Deconvolution: return define_convolution(d);
    case Form::AveragePool:
    case Form::MaxPool:
    case Form::ArgMaxPool: return define_pool(d);
    case Form::GlobalPool: return define_global_pool(d);
    case Form::Concatenate: return define_concatenate(d);
    case Form::MatrixMultiply:
      return xnn_define_batch_matrix_multiply(d.subgraph, d.in(0), d.in(1), d.out(), d.node.flags);
    default: return define_moved(d);
  }
}

}  // namespace

const char* name_of(xnn_status status) {
  switch (status) {
    case xnn_status_success: return "success";
    case xnn_status_uninitialized: return "uninitialized";
    case xnn_status_invalid_parameter: return "invalid parameter";
    case xnn_status_invalid_state: return "invalid state";
    case xnn_status_unsupported_parameter: return "unsupported parameter";
    case xnn_status_unsupported_hardware: return "unsupported hardware";
    case xnn_status_out_of_memory: return "out of memory";
    default: return "unknown status";
  }
}

Error error_of(xnn_status status) {
  switch (status) {
    case xnn_status_success: return Error::Ok;
    case xnn_status_out_of_memory: return Error::MemoryAllocationFailed;
    case xnn_status_invalid_parameter: return Error::InvalidProgram;
    case xnn_status_unsupported_parameter:
    case xnn_status_unsupported_hardware: return Error::NotSupported;
    default: return Error::Internal;
  }
}

Error define_graph(const Graph& graph, const Shape* shapes, xnn_subgraph_t subgraph) {
  Array<uint32_t> ids;
  ETX_TRY(ids.allocate(graph.num_values));
  for (uint32_t i = 0; i < graph.num_values; ++i) {
    const Value& value = graph.values[i];
    if (!value.is_used) continue;
    const xnn_status status = define_value(subgraph, value, shapes[i], &ids[i]);
    if (status == xnn_status_success) continue;
    return fail(error_of(status), "value %u: XNNPACK does not take this %s: %s", value.id,
                name_of(value.type), name_of(status));
  }
  for (uint32_t i = 0; i < graph.num_nodes; ++i) {
    const Node& node = graph.nodes[i];
    const xnn_status status = define_node({subgraph, node, ids.data(), graph});
    if (status == xnn_status_success) continue;
    return fail_at(node, error_of(status), "XNNPACK does not take %s -> %s (values %u, %u): %s",
                   name_of(graph.input(node, 0).type), name_of(graph.output(node).type),
                   graph.input(node, 0).id, graph.output(node).id, name_of(status));
  }
  return Error::Ok;
}

}  // namespace etx::xnnpack
