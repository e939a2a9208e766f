// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <xnnpack_generated.h>

#include "read.h"

namespace etx::xnnpack {
namespace {

namespace fbs = etx_fbs::xnnpack;

template <typename Table>
void set_one(const Table& table, Node* node) {
  node->num_inputs = 1;
  node->inputs[0] = table.input_id();
  node->num_outputs = 1;
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

Error copy_list(const flatbuffers::Vector<uint32_t>* stored, size_t* list, Node* node) {
  const uint32_t length = stored == nullptr ? 0 : stored->size();
  if (length > kMaxRank) {
    return fail_at(*node, Error::InvalidProgram, "a list of %u sizes, expected at most 6", length);
  }
  if (node->num_list != 0 && node->num_list != length) {
    return fail_at(*node, Error::InvalidProgram, "lists of %u and %u sizes", node->num_list,
                   length);
  }
  node->num_list = length;
  for (uint32_t i = 0; i < length; ++i) list[i] = stored->Get(i);
  return Error::Ok;
}

void read_binary(const fbs::Binary& table, Node* node) {
  node->num_inputs = 2;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.input2_id();
  node->num_outputs = 1;
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

void read_fully_connected(const fbs::FullyConnected& table, Node* node) {
  node->num_inputs = 3;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.filter_id();
  node->inputs[2] = table.bias_id();
  node->num_outputs = 1;
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

void read_convolution(const fbs::Convolution& table, Node* node) {
  node->num_inputs = 3;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.filter_id();
  node->inputs[2] = table.bias_id();
  node->num_outputs = 1;
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
  node->window = {table.padding_top(),
                  table.padding_right(),
                  table.padding_bottom(),
                  table.padding_left(),
                  table.kernel_height(),
                  table.kernel_width(),
                  table.subsampling_height(),
                  table.subsampling_width(),
                  table.dilation_height(),
                  table.dilation_width(),
                  table.groups(),
                  table.group_input_channels(),
                  table.group_output_channels(),
                  table.adjustment_height(),
                  table.adjustment_width()};
}

void read_pool(const fbs::Pooling2d& table, Node* node) {
  set_one(table, node);
  node->window.top = table.padding_top();
  node->window.right = table.padding_right();
  node->window.bottom = table.padding_bottom();
  node->window.left = table.padding_left();
  node->window.height = table.pooling_height();
  node->window.width = table.pooling_width();
  node->window.stride_height = table.stride_height();
  node->window.stride_width = table.stride_width();
  const bool has_dilation = node->kind->form == Form::MaxPool;
  node->window.dilation_height = has_dilation ? table.dilation_height() : 1;
  node->window.dilation_width = has_dilation ? table.dilation_width() : 1;
}

void read_arg_max_pool(const fbs::ArgMaxPooling2d& table, Node* node) {
  node->num_inputs = 1;
  node->inputs[0] = table.input_id();
  node->num_outputs = 2;
  node->outputs[0] = table.output_value_id();
  node->outputs[1] = table.output_index_id();
  node->flags = table.flags();
  node->window.top = table.padding_top();
  node->window.right = table.padding_right();
  node->window.bottom = table.padding_bottom();
  node->window.left = table.padding_left();
  node->window.height = node->window.stride_height = table.pooling_height();
  node->window.width = node->window.stride_width = table.pooling_width();
  node->window.dilation_height = node->window.dilation_width = 1;
}

void read_concatenate(const fbs::Concatenate& table, uint32_t count, Node* node) {
  const uint32_t ids[] = {table.input1_id(), table.input2_id(), table.input3_id(),
                          table.input4_id(), table.input5_id()};
  node->num_inputs = count;
  for (uint32_t i = 0; i < count; ++i) node->inputs[i] = ids[i];
  node->num_outputs = 1;
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
  node->axis = table.axis();
}

uint32_t inputs_of(fbs::Operator kind) {
  switch (kind) {
    case fbs::Operator::Concatenate2: return 2;
    case fbs::Operator::Concatenate3: return 3;
    case fbs::Operator::Concatenate4: return 4;
    default: return 5;
  }
}

template <typename Table>
const Table& payload(const fbs::Node& stored) {
  return *static_cast<const Table*>(stored.operation());
}

Error read_lists(const fbs::Node& stored, Node* node) {
  switch (node->kind->form) {
    case Form::Transpose: {
      const auto& table = payload<fbs::Transpose>(stored);
      set_one(table, node);
      return copy_list(table.perm(), node->list, node);
    }
    case Form::Reshape: {
      const auto& table = payload<fbs::Reshape>(stored);
      set_one(table, node);
      return copy_list(table.new_shape(), node->list, node);
    }
    case Form::Pad: {
      const auto& table = payload<fbs::ConstantPad>(stored);
      set_one(table, node);
      node->number = table.padding_value();
      ETX_TRY(copy_list(table.pre_paddings(), node->list, node));
      return copy_list(table.post_paddings(), node->list2, node);
    }
    default: {
      const auto& table = payload<fbs::Slice>(stored);
      set_one(table, node);
      ETX_TRY(copy_list(table.offsets(), node->list, node));
      return copy_list(table.sizes(), node->list2, node);
    }
  }
}

Error read_payload(const fbs::Node& stored, Node* node) {
  switch (node->kind->form) {
    case Form::Binary:
    case Form::MatrixMultiply: read_binary(payload<fbs::Binary>(stored), node); break;
    case Form::FullyConnected:
      read_fully_connected(payload<fbs::FullyConnected>(stored), node);
      break;
    case Form::Convolution:
    case Form::Depthwise:
    case Form::Deconvolution: read_convolution(payload<fbs::Convolution>(stored), node); break;
    case Form::AveragePool:
    case Form::MaxPool: read_pool(payload<fbs::Pooling2d>(stored), node); break;
    case Form::ArgMaxPool: read_arg_max_pool(payload<fbs::ArgMaxPooling2d>(stored), node); break;
    case Form::Concatenate:
      read_concatenate(payload<fbs::Concatenate>(stored), inputs_of(stored.operation_type()), node);
      break;
    case Form::LeakyRelu:
      set_one(payload<fbs::LeakyRelu>(stored), node);
      node->number = payload<fbs::LeakyRelu>(stored).negative_slope();
      break;
    case Form::Elu:
      set_one(payload<fbs::Elu>(stored), node);
      node->number = payload<fbs::Elu>(stored).alpha();
      break;
    case Form::Resize: {
      const auto& table = payload<fbs::ResizeBilinear2d>(stored);
      set_one(table, node);
      node->list[0] = table.new_height();
      node->list[1] = table.new_width();
      break;
    }
    case Form::Transpose:
    case Form::Reshape:
    case Form::Pad:
    case Form::Slice: return read_lists(stored, node);
    default: set_one(payload<fbs::Unary>(stored), node); break;
  }
  return Error::Ok;
}

}  // namespace

Error read_node(const fbs::Node& stored, Node* node) {
  node->kind = find_kind(static_cast<uint8_t>(stored.operation_type()));
  if (node->kind == nullptr || stored.operation() == nullptr) {
    return fail(Error::NotSupported, "node %u: kind %u is not supported", node->place,
                static_cast<unsigned>(stored.operation_type()));
  }
  ETX_TRY(read_payload(stored, node));
  if ((node->flags & ~node->kind->flags) != 0) {
    return fail_at(*node, Error::NotSupported, "flags %u, expected of %u", node->flags,
                   node->kind->flags);
  }
  node->lowest = -INFINITY;
  node->highest = INFINITY;
  if (const auto* range = stored.output_range()) {
    node->lowest = range->lowest();
    node->highest = range->highest();
  }
  if (!(node->lowest <= node->highest)) {
    return fail_at(*node, Error::InvalidProgram, "clamped to [%g, %g]",
                   static_cast<double>(node->lowest), static_cast<double>(node->highest));
  }
  return Error::Ok;
}

}  // namespace etx::xnnpack
