// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_GRAPH_H_
#define ETX_XNNPACK_GRAPH_H_

#include <cstddef>
#include <cstdint>

#include <etx/abi.h>
#include <xnnpack.h>

#include "array.h"

namespace etx::xnnpack {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMaxRank = XNN_MAX_TENSOR_DIMS;
constexpr uint32_t kMaxExternals = 4096;
/// Of one value: what is larger is taken for damage.
constexpr size_t kMaxElements = size_t{1} << 40;

/// Sizes in the order in which XNNPACK sees them.
struct Shape {
  uint32_t rank;
  size_t sizes[kMaxRank];

  size_t count() const;
  size_t last() const { return rank == 0 ? 1 : sizes[rank - 1]; }
  bool operator==(const Shape& other) const;
};

/// A tensor of the graph: constant, external, or made by a node for others.
struct Value {
  uint32_t id;  ///< As the blob names it.
  xnn_datatype type;
  Shape shape;  ///< As stored; of what nodes make, as it follows from the inputs.
  uint32_t external;
  bool is_input;
  bool is_output;
  uint32_t constant;  ///< Index of the blob's list of constants; 0: none.
  const void* data;   ///< Of a constant.
  uint32_t producer;  ///< Index of the node that writes it, or kNone.
  bool is_used;       ///< External, or read by a node on the way to an output.

  float scale;  ///< Of qint8, quint8 and qint32.
  int32_t zero_point;
  const void* scales;  ///< float of qcint*, bfloat16 of qbint4; aligned.
  uint32_t num_scales;
  uint32_t channel_dim;
  uint32_t group_size;
  uint32_t num_nonbatch;  ///< Of qdint8: trailing dimensions that share a scale.

  bool is_constant() const { return constant != 0; }
};

/// How nodes are read, checked, shaped and defined.
enum class Form : uint8_t {
  Unknown,
  Unary,
  Clamp,
  LeakyRelu,
  Elu,
  Convert,
  Copy,
  Softmax,
  Binary,
  FullyConnected,
  Convolution,
  Depthwise,
  Deconvolution,
  AveragePool,
  MaxPool,
  ArgMaxPool,
  GlobalPool,
  Transpose,
  Reshape,
  Resize,
  Pad,
  Slice,
  Concatenate,
  MatrixMultiply,
};

/// A row of nodes.def.
struct Kind {
  const char* name;
  Form form;
  int operation;
  uint32_t flags;
};

/// The row of a tag of the blob's union of nodes, or null.
const Kind* find_kind(uint8_t tag);

/// The window of convolutions and pools.
struct Window {
  uint32_t top, right, bottom, left;
  uint32_t height, width;
  uint32_t stride_height, stride_width;
  uint32_t dilation_height, dilation_width;
  uint32_t groups, group_inputs, group_outputs;
  uint32_t adjust_height, adjust_width;
};

struct Node {
  const Kind* kind;
  uint32_t place;  ///< In the blob's list.
  uint32_t flags;
  uint32_t num_inputs;
  uint32_t inputs[5];  ///< Indices of values; kNone for an absent bias.
  uint32_t num_outputs;
  uint32_t outputs[2];
  size_t channels;  ///< Of the images that XNNPACK's lists of pointers are for: see Delegate.
  float lowest, highest;
  bool is_apart;  ///< Of a clamp that XNNPACK must not join with the node before it.
  float number;   ///< Slope, alpha, padding.
  Window window;
  uint32_t axis;
  uint32_t num_list;
  size_t list[kMaxRank];   ///< Permutation, sizes, offsets, paddings before, new height and width.
  size_t list2[kMaxRank];  ///< Sizes of a slice, paddings behind.

  bool has_bias() const { return num_inputs == 3 && inputs[2] != kNone; }
};

/// What a blob computes, checked: ids, ranks, types and sizes fit XNNPACK's functions.
struct Graph {
  Array<Value> values;
  uint32_t num_values = 0;
  Array<Node> nodes;
  uint32_t num_nodes = 0;
  uint32_t num_externals = 0;
  Array<uint32_t> externals;  ///< The value of each external, or kNone.

  const Value& input(const Node& node, uint32_t i) const { return values[node.inputs[i]]; }
  const Value& output(const Node& node, uint32_t i = 0) const { return values[node.outputs[i]]; }
};

/// Whether a node clamps its results.
bool has_range(const Node& node);

const char* name_of(xnn_datatype type);
/// Bytes of an element; of 4-bit types see size_of_constant.
size_t element_size(xnn_datatype type);

/// Bytes of a constant; 4-bit weights have two to a byte, each row on its own.
size_t size_of_constant(const Value& value);

/// A failure that begins with the node's place and kind.
[[gnu::format(printf, 3, 4)]] Error fail_at(const Node& node, Error error, const char* format, ...);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_GRAPH_H_
