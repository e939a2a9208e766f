// SPDX-License-Identifier: BSD-3-Clause
#include "shapes.h"

#include <algorithm>

namespace etx::xnnpack {
namespace {

/// Window times outputs, the length of XNNPACK's lists of pointers: more is taken for damage.
constexpr size_t kMaxPointers = size_t{1} << 31;

/// A node among the shapes of its graph.
struct Call {
  const Graph& graph;
  const Node& node;
  Shape* shapes;

  const Shape& in(uint32_t i) const { return shapes[node.inputs[i]]; }
  Shape& out(uint32_t i = 0) const { return shapes[node.outputs[i]]; }
  uint32_t id(uint32_t i) const { return graph.input(node, i).id; }

  Error need_rank(uint32_t i, uint32_t rank) const {
    if (in(i).rank == rank) return Error::Ok;
    return fail_at(node, Error::InvalidArgument, "value %u has rank %u, expected %u", id(i),
                   in(i).rank, rank);
  }
};

Error infer_binary(const Call& call) {
  const Shape& a = call.in(0);
  const Shape& b = call.in(1);
  Shape out{};
  out.rank = std::max(a.rank, b.rank);
  for (uint32_t i = 0; i < out.rank; ++i) {
    const size_t x = i < out.rank - a.rank ? 1 : a.sizes[i - (out.rank - a.rank)];
    const size_t y = i < out.rank - b.rank ? 1 : b.sizes[i - (out.rank - b.rank)];
    if (x != y && x != 1 && y != 1) {
      return fail_at(call.node, Error::InvalidArgument,
                     "sizes %zu of value %u and %zu of value %u do not broadcast", x, call.id(0), y,
                     call.id(1));
    }
    out.sizes[i] = x == 1 ? y : x;
  }
  call.out() = out;
  return Error::Ok;
}

Error infer_bias(const Call& call, size_t channels) {
  if (!call.node.has_bias()) return Error::Ok;
  const size_t count = call.in(2).count();
  if (count == channels && call.in(2).rank != 0 && call.in(2).last() == channels) return Error::Ok;
  return fail_at(call.node, Error::InvalidArgument, "bias value %u has %zu elements, expected %zu",
                 call.id(2), count, channels);
}

/// The scales of a filter must be one for each output channel.
Error check_channel(const Call& call, uint32_t dim) {
  const Value& filter = call.graph.input(call.node, 1);
  const bool has_channels =
      filter.type == xnn_datatype_qcint8 || filter.type == xnn_datatype_qcint4;
  if (!has_channels || filter.channel_dim == dim) return Error::Ok;
  return fail_at(call.node, Error::InvalidArgument,
                 "value %u has scales along dimension %u, expected %u", filter.id,
                 filter.channel_dim, dim);
}

Error infer_fully_connected(const Call& call) {
  const Shape& in = call.in(0);
  ETX_TRY(call.need_rank(1, 2));
  const bool is_transposed = (call.node.flags & XNN_FLAG_TRANSPOSE_WEIGHTS) != 0;
  const size_t outputs = call.in(1).sizes[is_transposed ? 1 : 0];
  const size_t inputs = call.in(1).sizes[is_transposed ? 0 : 1];
  if (in.rank == 0 || in.last() != inputs) {
    return fail_at(call.node, Error::InvalidArgument,
                   "value %u ends in %zu elements, filter value %u takes %zu", call.id(0),
                   in.last(), call.id(1), inputs);
  }
  ETX_TRY(check_channel(call, is_transposed ? 1 : 0));
  ETX_TRY(infer_bias(call, outputs));
  call.out() = in;
  call.out().sizes[in.rank - 1] = outputs;
  return Error::Ok;
}

/// Steps of a window over a padded side; 0 where it does not fit.
size_t steps(size_t side, uint32_t before, uint32_t behind, uint32_t window, uint32_t stride,
             uint32_t dilation) {
  const size_t padded = side + before + behind;
  const size_t reach = size_t{window - 1} * dilation + 1;
  return padded < reach ? 0 : (padded - reach) / stride + 1;
}

Error set_image(const Call& call, size_t height, size_t width, size_t channels) {
  const Window& w = call.node.window;
  size_t pointers = height * width;
  if (height == 0 || width == 0 || height > kMaxPointers || width > kMaxPointers) {
    return fail_at(call.node, Error::InvalidArgument, "the window does not fit value %u of %zux%zu",
                   call.id(0), call.in(0).sizes[1], call.in(0).sizes[2]);
  }
  if (__builtin_mul_overflow(pointers, size_t{w.height} * w.width, &pointers) ||
      pointers > kMaxPointers) {
    return fail_at(call.node, Error::InvalidArgument, "a window of %ux%u at %zux%zu places",
                   w.height, w.width, height, width);
  }
  for (uint32_t i = 0; i < call.node.num_outputs; ++i) {
    call.out(i) = {4, {call.in(0).sizes[0], height, width, channels}};
  }
  return Error::Ok;
}

Error check_channels(const Call& call, size_t channels) {
  ETX_TRY(call.need_rank(0, 4));
  if (call.in(0).sizes[3] == channels) return Error::Ok;
  return fail_at(call.node, Error::InvalidArgument, "value %u has %zu channels, expected %zu",
                 call.id(0), call.in(0).sizes[3], channels);
}

Error check_filter(const Call& call, const Shape& expected) {
  if (call.in(1) == expected) return Error::Ok;
  return fail_at(call.node, Error::InvalidArgument,
                 "filter value %u does not have the sizes %zu, %zu, %zu, %zu", call.id(1),
                 expected.sizes[0], expected.sizes[1], expected.sizes[2], expected.sizes[3]);
}

Error infer_window(const Call& call, size_t channels) {
  const Window& w = call.node.window;
  const Shape& in = call.in(0);
  return set_image(
      call, steps(in.sizes[1], w.top, w.bottom, w.height, w.stride_height, w.dilation_height),
      steps(in.sizes[2], w.left, w.right, w.width, w.stride_width, w.dilation_width), channels);
}

Error infer_convolution(const Call& call) {
  const Window& w = call.node.window;
  const size_t outputs = size_t{w.groups} * w.group_outputs;
  ETX_TRY(check_channels(call, size_t{w.groups} * w.group_inputs));
  ETX_TRY(infer_bias(call, outputs));
  if (call.node.kind->form == Form::Depthwise) {
    ETX_TRY(check_filter(call, {4, {1, w.height, w.width, outputs}}));
    ETX_TRY(check_channel(call, 3));
  } else {
    ETX_TRY(check_filter(call, {4, {outputs, w.height, w.width, w.group_inputs}}));
    ETX_TRY(check_channel(call, 0));
  }
  return infer_window(call, outputs);
}

/// Side of a transposed convolution; 0 where padding takes all.
size_t spread(size_t side, uint32_t padding, uint32_t adjustment, uint32_t window, uint32_t stride,
              uint32_t dilation) {
  const size_t whole = (side - 1) * stride + adjustment + size_t{window - 1} * dilation + 1;
  return side == 0 || whole <= padding ? 0 : whole - padding;
}

Error infer_deconvolution(const Call& call) {
  const Window& w = call.node.window;
  const size_t outputs = size_t{w.groups} * w.group_outputs;
  ETX_TRY(check_channels(call, size_t{w.groups} * w.group_inputs));
  ETX_TRY(infer_bias(call, outputs));
  ETX_TRY(check_filter(call, {4, {outputs, w.height, w.width, w.group_inputs}}));
  ETX_TRY(check_channel(call, 0));
  if (w.adjust_height >= w.stride_height || w.adjust_width >= w.stride_width) {
    return fail_at(call.node, Error::InvalidArgument, "an adjustment of %ux%u with stride %ux%u",
                   w.adjust_height, w.adjust_width, w.stride_height, w.stride_width);
  }
  const Shape& in = call.in(0);
  return set_image(call,
                   spread(in.sizes[1], w.top + w.bottom, w.adjust_height, w.height, w.stride_height,
                          w.dilation_height),
                   spread(in.sizes[2], w.left + w.right, w.adjust_width, w.width, w.stride_width,
                          w.dilation_width),
                   outputs);
}

Error infer_global_pool(const Call& call) {
  ETX_TRY(call.need_rank(0, 4));
  const Shape& in = call.in(0);
  const bool keeps = (call.node.flags & XNN_FLAG_KEEP_DIMS) != 0;
  call.out() =
      keeps ? Shape{4, {in.sizes[0], 1, 1, in.sizes[3]}} : Shape{2, {in.sizes[0], in.sizes[3]}};
  return Error::Ok;
}

Error infer_transpose(const Call& call) {
  ETX_TRY(call.need_rank(0, call.node.num_list));
  Shape out{};
  out.rank = call.node.num_list;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < out.rank; ++i) {
    const size_t from = call.node.list[i];
    if (from >= out.rank || (seen & 1u << from) != 0) {
      return fail_at(call.node, Error::InvalidArgument, "%zu in its permutation of %u", from,
                     out.rank);
    }
    seen |= 1u << from;
    out.sizes[i] = call.in(0).sizes[from];
  }
  call.out() = out;
  return Error::Ok;
}

Error infer_reshape(const Call& call) {
  const size_t count = call.in(0).count();
  Shape out{};
  out.rank = call.node.num_list;
  uint32_t open = kNone;
  size_t known = 1;
  bool fits = true;
  for (uint32_t i = 0; i < out.rank; ++i) {
    out.sizes[i] = call.node.list[i];
    fits = fits && (out.sizes[i] != 0 || open == kNone);
    if (out.sizes[i] == 0) {
      open = i;
    } else {
      fits = fits && !__builtin_mul_overflow(known, out.sizes[i], &known);
    }
  }
  if (fits && open != kNone) out.sizes[open] = count / known;
  if (!fits || (open == kNone ? count != known : out.sizes[open] * known != count)) {
    return fail_at(call.node, Error::InvalidArgument, "value %u has %zu elements for %zu",
                   call.id(0), count, known);
  }
  call.out() = out;
  return Error::Ok;
}

Error infer_resize(const Call& call) {
  ETX_TRY(call.need_rank(0, 4));
  const size_t height = call.node.list[0];
  const size_t width = call.node.list[1];
  constexpr size_t kMost = (1u << 24) - 1;
  const Shape& in = call.in(0);
  if (height == 0 || width == 0 || std::max(height, width) > kMost ||
      std::max(in.sizes[1], in.sizes[2]) > kMost || height * width > kMaxPointers / 4) {
    return fail_at(call.node, Error::InvalidArgument, "value %u of %zux%zu to %zux%zu", call.id(0),
                   in.sizes[1], in.sizes[2], height, width);
  }
  call.out() = {4, {in.sizes[0], height, width, in.sizes[3]}};
  return Error::Ok;
}

Error infer_pad(const Call& call) {
  ETX_TRY(call.need_rank(0, call.node.num_list));
  call.out() = call.in(0);
  for (uint32_t i = 0; i < call.node.num_list; ++i) {
    call.out().sizes[i] += call.node.list[i] + call.node.list2[i];
  }
  return Error::Ok;
}

Error infer_slice(const Call& call) {
  ETX_TRY(call.need_rank(0, call.node.num_list));
  Shape out = call.in(0);
  for (uint32_t i = 0; i < out.rank; ++i) {
    const size_t offset = call.node.list[i];
    const size_t size = call.node.list2[i];
    const bool is_whole = size == 0 && offset == 0;
    if (!is_whole && (size == 0 || offset > out.sizes[i] || size > out.sizes[i] - offset)) {
      return fail_at(call.node, Error::InvalidArgument,
                     "%zu elements from %zu on along dimension %u of value %u, which has %zu", size,
                     offset, i, call.id(0), out.sizes[i]);
    }
    if (!is_whole) out.sizes[i] = size;
  }
  call.out() = out;
  return Error::Ok;
}

Error infer_concatenate(const Call& call) {
  const uint32_t axis = call.node.axis;
  Shape out = call.in(0);
  if (axis >= out.rank) {
    return fail_at(call.node, Error::InvalidArgument, "no dimension %u in value %u of rank %u",
                   axis, call.id(0), out.rank);
  }
  for (uint32_t k = 1; k < call.node.num_inputs; ++k) {
    ETX_TRY(call.need_rank(k, out.rank));
    for (uint32_t i = 0; i < out.rank; ++i) {
      if (i == axis || call.in(k).sizes[i] == out.sizes[i]) continue;
      return fail_at(call.node, Error::InvalidArgument,
                     "dimension %u of value %u has %zu elements, that of value %u %zu", i,
                     call.id(k), call.in(k).sizes[i], call.id(0), out.sizes[i]);
    }
    out.sizes[axis] += call.in(k).sizes[axis];
  }
  call.out() = out;
  return Error::Ok;
}

Error infer_matrix_multiply(const Call& call) {
  const Shape& a = call.in(0);
  const Shape& b = call.in(1);
  if (a.rank < 2 || b.rank < 2) {
    return fail_at(call.node, Error::InvalidArgument, "values %u and %u of ranks %u and %u",
                   call.id(0), call.id(1), a.rank, b.rank);
  }
  const bool is_transposed = (call.node.flags & XNN_FLAG_TRANSPOSE_B) != 0;
  const size_t depth = b.sizes[b.rank - (is_transposed ? 1 : 2)];
  if (a.last() != depth) {
    return fail_at(call.node, Error::InvalidArgument, "depths %zu of value %u and %zu of value %u",
                   a.last(), call.id(0), depth, call.id(1));
  }
  Shape out{};
  out.rank = std::max(a.rank, b.rank);
  for (uint32_t i = 0; i < out.rank - 2; ++i) {
    const size_t x = i < out.rank - a.rank ? 1 : a.sizes[i - (out.rank - a.rank)];
    const size_t y = i < out.rank - b.rank ? 1 : b.sizes[i - (out.rank - b.rank)];
    if (x != y && x != 1 && y != 1) {
      return fail_at(call.node, Error::InvalidArgument,
                     "batches %zu of value %u and %zu of value %u do not broadcast", x, call.id(0),
                     y, call.id(1));
    }
    out.sizes[i] = std::max(x, y);
  }
  out.sizes[out.rank - 2] = a.sizes[a.rank - 2];
  out.sizes[out.rank - 1] = b.sizes[b.rank - (is_transposed ? 2 : 1)];
  call.out() = out;
  return Error::Ok;
}

Error infer_same(const Call& call) {
  call.out() = call.in(0);
  return Error::Ok;
}

Error infer(const Call& call) {
  switch (call.node.kind->form) {
    case Form::Binary: return infer_binary(call);
    case Form::FullyConnected: return infer_fully_connected(call);
    case Form::Convolution:
    case Form::Depthwise: return infer_convolution(call);
    case Form::Deconvolution: return infer_deconvolution(call);
    case Form::AveragePool:
    case Form::MaxPool:
    case Form::ArgMaxPool:
      ETX_TRY(call.need_rank(0, 4));
      return infer_window(call, call.in(0).sizes[3]);
    case Form::GlobalPool: return infer_global_pool(call);
    case Form::Transpose: return infer_transpose(call);
    case Form::Reshape: return infer_reshape(call);
    case Form::Resize: return infer_resize(call);
    case Form::Pad: return infer_pad(call);
    case Form::Slice: return infer_slice(call);
    case Form::Concatenate: return infer_concatenate(call);
    case Form::MatrixMultiply: return infer_matrix_multiply(call);
    default: return infer_same(call);
  }
}

/// Sizes stay below 2^40 elements, and none is 0.
Error check_size(const Call& call, const Shape& shape, uint32_t id) {
  size_t count = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    if (shape.sizes[i] != 0 && !__builtin_mul_overflow(count, shape.sizes[i], &count) &&
        count <= kMaxElements) {
      continue;
    }
    return fail_at(call.node, Error::InvalidArgument, "value %u: dimension %u has %zu elements", id,
                   i, shape.sizes[i]);
  }
  return Error::Ok;
}

}  // namespace

Error infer_shapes(const Graph& graph, Shape* shapes) {
  for (uint32_t i = 0; i < graph.num_nodes; ++i) {
    const Node& node = graph.nodes[i];
    const Call call{graph, node, shapes};
    for (uint32_t k = 0; k < node.num_inputs; ++k) {
      if (node.inputs[k] != kNone) ETX_TRY(check_size(call, call.in(k), call.id(k)));
    }
    ETX_TRY(infer(call));
    for (uint32_t k = 0; k < node.num_outputs; ++k) {
      ETX_TRY(check_size(call, call.out(k), graph.output(node, k).id));
    }
  }
  return Error::Ok;
}

}  // namespace etx::xnnpack
