// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "read.h"

namespace etx::xnnpack {
namespace {

/// Of windows: what is larger is taken for damage, and products of two fit uint32.
constexpr uint32_t kMaxWindow = 65535;

bool is_float(xnn_datatype type) { return type == xnn_datatype_fp32 || type == xnn_datatype_fp16; }

bool is_byte(xnn_datatype type) {
  return type == xnn_datatype_qint8 || type == xnn_datatype_quint8;
}

/// All inputs and the output have one type, of float or of bytes.
Error check_same(const Graph& graph, const Node& node) {
  const xnn_datatype type = graph.output(node).type;
  if (!is_float(type) && !is_byte(type)) {
    return fail_at(node, Error::NotSupported, "value %u is %s", graph.output(node).id,
                   name_of(type));
  }
  for (uint32_t i = 0; i < node.num_inputs; ++i) {
    if (graph.input(node, i).type == type) continue;
    return fail_at(node, Error::InvalidProgram, "value %u is %s, value %u %s",
                   graph.input(node, i).id, name_of(graph.input(node, i).type),
                   graph.output(node).id, name_of(type));
  }
  return Error::Ok;
}

Error check_float(const Graph& graph, const Node& node) {
  ETX_TRY(check_same(graph, node));
  if (is_float(graph.output(node).type)) return Error::Ok;
  return fail_at(node, Error::NotSupported, "value %u is %s, expected fp32 or fp16",
                 graph.output(node).id, name_of(graph.output(node).type));
}

/// What multipliers of bytes hold: XNNPACK asserts it, so only where it is built for debugging.
Error check_ratio(const Node& node, double ratio, double least, double most) {
  if (ratio >= least && ratio < most) return Error::Ok;
  return fail_at(node, Error::NotSupported, "a ratio of scales of %g, expected %g to %g", ratio,
                 least, most);
}

Error check_pair(const Graph& graph, const Node& node) {
  ETX_TRY(check_same(graph, node));
  const Value& out = graph.output(node);
  if (!is_byte(out.type)) return Error::Ok;
  const double a = graph.input(node, 0).scale;
  const double b = graph.input(node, 1).scale;
  if (node.kind->operation == xnn_binary_multiply) {
    return check_ratio(node, a * b / out.scale, 0x1p-16, 0x1p8);
  }
  return check_ratio(node, (a > b ? a : b) / out.scale, 0x1p-10, 0x1p8);
}

Error check_slopes(const Graph& graph, const Node& node) {
  ETX_TRY(check_same(graph, node));
  const Value& out = graph.output(node);
  if (!is_byte(out.type)) return Error::Ok;
  const double ratio = double{graph.input(node, 0).scale} / out.scale;
  ETX_TRY(check_ratio(node, ratio, 0x1p-8, 0x1p7));
  return check_ratio(node, ratio * node.number, -0x1p7, 0x1p7);
}

/// XNNPACK moves bytes, whose scale must stay.
Error check_moved(const Graph& graph, const Node& node) {
  ETX_TRY(check_same(graph, node));
  const Value& out = graph.output(node);
  for (uint32_t i = 0; is_byte(out.type) && i < node.num_inputs; ++i) {
    const Value& in = graph.input(node, i);
    if (in.scale == out.scale && in.zero_point == out.zero_point) continue;
    return fail_at(node, Error::NotSupported, "value %u has another scale than value %u", in.id,
                   out.id);
  }
  return Error::Ok;
}

Error check_convert(const Graph& graph, const Node& node) {
  const xnn_datatype from = graph.input(node, 0).type;
  const xnn_datatype to = graph.output(node).type;
  const bool is_known = (is_float(from) && (is_float(to) || is_byte(to))) ||
                        (is_float(from) && to == xnn_datatype_qdint8) ||
                        (is_byte(from) && (is_float(to) || is_byte(to)));
  if (is_known && is_byte(from) && is_byte(to)) {
    const double ratio = double{graph.input(node, 0).scale} / graph.output(node).scale;
    return check_ratio(node, ratio, 0x1p-8, 0x1p7);
  }
  if (is_known) return Error::Ok;
  return fail_at(node, Error::NotSupported, "from %s to %s", name_of(from), name_of(to));
}

Error check_window(const Node& node) {
  const Window& w = node.window;
  const uint32_t sizes[] = {w.top,          w.right,           w.bottom,         w.left,
                            w.height,       w.width,           w.stride_height,  w.stride_width,
                            w.adjust_width, w.dilation_height, w.dilation_width, w.adjust_height};
  for (const uint32_t size : sizes) {
    if (size > kMaxWindow) return fail_at(node, Error::InvalidProgram, "a window of %u", size);
  }
  if (w.height == 0 || w.width == 0 || w.stride_height == 0 || w.stride_width == 0 ||
      w.dilation_height == 0 || w.dilation_width == 0) {
    return fail_at(node, Error::InvalidProgram, "a window, stride or dilation of 0");
  }
  return Error::Ok;
}

Error check_weights(const Graph& graph, const Node& node) {
  const Value& filter = graph.input(node, 1);
  if (!filter.is_constant()) {
    return fail_at(node, Error::NotSupported, "filter value %u is not constant", filter.id);
  }
  if (filter.type == xnn_datatype_qint8 && filter.zero_point != 0) {
    return fail_at(node, Error::InvalidProgram, "filter value %u has zero point %d", filter.id,
                   filter.zero_point);
  }
  if (node.has_bias() && !graph.input(node, 2).is_constant()) {
    return fail_at(node, Error::NotSupported, "bias value %u is not constant",
                   graph.input(node, 2).id);
  }
  const xnn_datatype type = graph.input(node, 0).type;
  if (is_float(type) || is_byte(type) || type == xnn_datatype_qdint8) return Error::Ok;
  return fail_at(node, Error::NotSupported, "input value %u is %s", graph.input(node, 0).id,
                 name_of(type));
}

Error check_fully_connected(const Graph& graph, const Node& node) {
  const Value& filter = graph.input(node, 1);
  const Value& in = graph.input(node, 0);
  const bool is_transposed = (node.flags & XNN_FLAG_TRANSPOSE_WEIGHTS) != 0;
  const bool is_packed = filter.type == xnn_datatype_qcint4 || filter.type == xnn_datatype_qbint4;
  if (is_packed && is_transposed) {
    return fail_at(node, Error::NotSupported, "transposed 4-bit weights (value %u)", filter.id);
  }
  if (is_packed && filter.shape.last() % 2 != 0) {
    return fail_at(node, Error::NotSupported, "4-bit rows of %zu elements (value %u)",
                   filter.shape.last(), filter.id);
  }
  if (in.type == xnn_datatype_qdint8 && in.num_nonbatch != 1) {
    return fail_at(node, Error::NotSupported, "value %u has a scale for %u dimensions, expected 1",
                   in.id, in.num_nonbatch);
  }
  if (filter.is_constant()) return check_weights(graph, node);
  if (filter.type != xnn_datatype_fp32) {
    return fail_at(node, Error::NotSupported, "filter value %u is %s and not constant", filter.id,
                   name_of(filter.type));
  }
  if (node.has_bias() && graph.input(node, 2).type != xnn_datatype_fp32) {
    return fail_at(node, Error::NotSupported, "bias value %u is %s", graph.input(node, 2).id,
                   name_of(graph.input(node, 2).type));
  }
  return Error::Ok;
}

Error check_convolution(const Graph& graph, const Node& node) {
  ETX_TRY(check_window(node));
  ETX_TRY(check_weights(graph, node));
  const Window& w = node.window;
  size_t inputs = 0;
  size_t outputs = 0;
  if (w.groups == 0 || w.group_inputs == 0 || w.group_outputs == 0 ||
      __builtin_mul_overflow(size_t{w.groups}, w.group_inputs, &inputs) ||
      __builtin_mul_overflow(size_t{w.groups}, w.group_outputs, &outputs) || inputs > INT32_MAX ||
      outputs > INT32_MAX) {
    return fail_at(node, Error::InvalidProgram, "%u groups of %u to %u channels", w.groups,
                   w.group_inputs, w.group_outputs);
  }
  if (node.kind->form == Form::Depthwise && w.group_inputs != 1) {
    return fail_at(node, Error::InvalidProgram, "%u channels in each group, expected 1",
                   w.group_inputs);
  }
  const Value& in = graph.input(node, 0);
  if (in.type == xnn_datatype_qdint8 && in.num_nonbatch != 3) {
    return fail_at(node, Error::NotSupported, "value %u has a scale for %u dimensions, expected 3",
                   in.id, in.num_nonbatch);
  }
  return Error::Ok;
}

Error check_pool(const Graph& graph, const Node& node) {
  ETX_TRY(check_window(node));
  switch (node.kind->form) {
    case Form::MaxPool: return check_moved(graph, node);
    case Form::AveragePool: return check_float(graph, node);
    default: break;
  }
  if (graph.input(node, 0).type != xnn_datatype_fp32 ||
      graph.output(node).type != xnn_datatype_fp32) {
    return fail_at(node, Error::NotSupported, "value %u is %s, expected fp32",
                   graph.input(node, 0).id, name_of(graph.input(node, 0).type));
  }
  const xnn_datatype index = graph.output(node, 1).type;
  if (index == xnn_datatype_int32 || index == xnn_datatype_fp32) return Error::Ok;
  return fail_at(node, Error::NotSupported, "index value %u is %s", graph.output(node, 1).id,
                 name_of(index));
}

}  // namespace

Error check_node(const Graph& graph, const Node& node) {
  if (has_range(node) && node.lowest == node.highest) {
    return fail_at(node, Error::NotSupported, "clamped to one number, %g",
                   static_cast<double>(node.lowest));
  }
  switch (node.kind->form) {
    case Form::Unary:
    case Form::Elu:
    case Form::GlobalPool: return check_same(graph, node);
    case Form::LeakyRelu: return check_slopes(graph, node);
    case Form::Binary: return check_pair(graph, node);
    case Form::Softmax:
    case Form::MatrixMultiply: return check_float(graph, node);
    case Form::Convert: return check_convert(graph, node);
    case Form::FullyConnected: return check_fully_connected(graph, node);
    case Form::Convolution:
    case Form::Depthwise:
    case Form::Deconvolution: return check_convolution(graph, node);
    case Form::AveragePool:
    case Form::MaxPool:
    case Form::ArgMaxPool: return check_pool(graph, node);
    case Form::Clamp:
    case Form::Copy:
    case Form::Transpose:
    case Form::Reshape:
    case Form::Resize:
    case Form::Pad:
    case Form::Slice:
    case Form::Concatenate: return check_moved(graph, node);
    case Form::Unknown: break;
  }
  return fail_at(node, Error::NotSupported, "this kind is not supported");
}

}  // namespace etx::xnnpack
