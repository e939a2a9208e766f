// SPDX-License-Identifier: BSD-3-Clause
#include "delegate.h"

#include <algorithm>
#include <cstring>

#include <etx/value.h>

#include "graph/blame.h"
#include "graph/define.h"
#include "graph/shapes.h"
#include "initialize.h"

/// Lays out the workspace for the present shapes; not in XNNPACK's public header.
extern "C" xnn_status xnn_plan_memory(xnn_runtime_t runtime);

namespace etx::xnnpack {
namespace {

static_assert(XNN_EXTRA_QUANTIZATION_PARAMS >= 13, "see etx_patch_xnnpack in cmake/");

constexpr size_t kPage = 4096;
constexpr size_t kMostThreads = 256;

/// XNNPACK may read XNN_EXTRA_BYTES past a tensor: true where they lie on the tensor's last page.
bool is_readable_past(const void* data, size_t size) {
  const size_t last = (reinterpret_cast<uintptr_t>(data) + (size == 0 ? 0 : size - 1)) % kPage;
  return last + XNN_EXTRA_BYTES < kPage;
}

ScalarType scalar_type_of(xnn_datatype type) {
  switch (type) {
    case xnn_datatype_fp16: return ScalarType::Half;
    case xnn_datatype_qint8: return ScalarType::Char;
    case xnn_datatype_quint8: return ScalarType::Byte;
    case xnn_datatype_int32: return ScalarType::Int;
    default: return ScalarType::Float;
  }
}

/// Indices are int32 in XNNPACK and int64 in programs.
bool fits(const Value& value, ScalarType found) {
  return found == scalar_type_of(value.type) ||
         (value.type == xnn_datatype_int32 && value.is_output && found == ScalarType::Long);
}

Error check_argument(const Value& value, const etx_value& arg) {
  if (arg.tag != ETX_TAG_TENSOR) {
    return fail(Error::InvalidArgument, "argument %u is not a tensor", value.external);
  }
  const Tensor tensor(arg.payload.as_tensor);
  if (!fits(value, tensor.scalar_type())) {
    return fail(Error::InvalidArgument, "argument %u is %s, value %u is %s", value.external,
                to_string(tensor.scalar_type()), value.id, name_of(value.type));
  }
  if (value.is_output && (tensor.impl()->flags & ETX_TENSOR_CONSTANT) != 0) {
    return fail(Error::InvalidArgument, "argument %u is an output and constant", value.external);
  }
  if (tensor.impl()->data == nullptr) {
    return fail(Error::InvalidArgument, "argument %u has no memory", value.external);
  }
  return Error::Ok;
}

/// A scalar of the program is a value of one element.
Error check_rank(const Value& value, const Shape& shape, const Tensor& tensor) {
  const auto rank = static_cast<uint32_t>(tensor.dim());
  if (rank == shape.rank || (rank == 0 && shape.rank == 1 && shape.sizes[0] == 1)) return Error::Ok;
  return fail(Error::InvalidArgument, "argument %u has rank %u, value %u has %u", value.external,
              rank, value.id, shape.rank);
}

/// int32 at the front of the memory become int64.
void widen(const Tensor& tensor) {
  auto* wide = tensor.mutable_data_ptr<int64_t>();
  const auto* bytes = static_cast<const char*>(tensor.const_data_ptr());
  for (ssize_t i = tensor.numel() - 1; i >= 0; --i) {
    int32_t narrow = 0;
    std::memcpy(&narrow, bytes + static_cast<size_t>(i) * sizeof(narrow), sizeof(narrow));
    wide[i] = narrow;
  }
}

/// True when XNNPACK's memory for scales of rows follows the shapes: those of a linear layer.
bool has_fixed_rows(const Graph& graph, uint32_t index) {
  if (graph.values[index].num_nonbatch != 1) return false;
  bool is_read = false;
  for (uint32_t i = 0; i < graph.num_nodes; ++i) {
    const Node& node = graph.nodes[i];
    is_read |= node.kind->form == Form::FullyConnected && node.inputs[0] == index;
  }
  return is_read;
}

bool has_fixed_shapes(const Graph& graph) {
  for (uint32_t i = 0; i < graph.num_values; ++i) {
    if (graph.values[i].type == xnn_datatype_qdint8 && !has_fixed_rows(graph, i)) return true;
  }
  return false;
}

}  // namespace

Delegate::~Delegate() {
  if (workspace_ != nullptr) {
    {
      const Lock lock(workspace_->mutex);
      if (runtime_ != nullptr) xnn_delete_runtime(runtime_);
    }
    release_workspace(workspace_);
  }
  etx_xnnpack_pool_destroy(pool_);
  for (const Padded& each : padded_) std::free(each.memory);
}

Error Delegate::load(etx_init_context* context, const void* bytes, size_t size,
                     const Options& options) {
  Blob blob;
  ETX_TRY(read_blob(bytes, size, &blob));
  ETX_TRY(read_graph(blob, context, &graph_));
  ETX_TRY(shapes_.allocate(graph_.num_values));
  ETX_TRY(bound_.allocate(graph_.num_externals));
  ETX_TRY(padded_.allocate(graph_.num_externals));
  for (uint32_t i = 0; i < graph_.num_values; ++i) shapes_[i] = graph_.values[i].shape;
  ETX_TRY(infer_shapes(graph_, shapes_.data()));
  for (uint32_t i = 0; i < graph_.num_values; ++i) graph_.values[i].shape = shapes_[i];
  ETX_TRY(pad_constants(context));
  has_fixed_shapes_ = has_fixed_shapes(graph_);
  is_traced_ = context->is_traced;
  const size_t threads = std::max<size_t>(context->num_threads, 8);
  pool_ = etx_xnnpack_pool_create(std::min(threads, kMostThreads), options.has_weight_panels);
  if (pool_ == nullptr) return fail(Error::MemoryAllocationFailed, "no memory for threads");
  const xnn_status status = etx_xnnpack_initialize();
  if (status != xnn_status_success) {
    return fail(error_of(status), "XNNPACK does not run on this machine: %s", name_of(status));
  }
  const bool has_folder = options.weight_cache != nullptr &&
                          weight_folder_.open(options.weight_cache, options.weight_cache_limit,
                                              options.must_verify_weights);
  weights_.use(&graph_, has_folder ? &weight_folder_ : nullptr);
  ETX_TRY(acquire_workspace(options.sharing, context->method, &workspace_));
  const Lock lock(workspace_->mutex);
  return build();
}

/// Constants that are not packed are read as they lie.
Error Delegate::pad_constants(etx_init_context* context) {
  for (uint32_t i = 0; i < graph_.num_nodes; ++i) {
    const Node& node = graph_.nodes[i];
    const Form form = node.kind->form;
    const bool has_weights = form == Form::FullyConnected || form == Form::Convolution ||
                             form == Form::Depthwise || form == Form::Deconvolution;
    for (uint32_t k = 0; k < (has_weights ? 1 : node.num_inputs); ++k) {
      Value& value = graph_.values[node.inputs[k]];
      const size_t size = value.shape.count() * element_size(value.type);
      if (!value.is_constant() || is_readable_past(value.data, size)) continue;
      void* copy = context->allocate(context, size + XNN_EXTRA_BYTES, 16);
      if (copy == nullptr) return fail(Error::MemoryAllocationFailed, "no memory for constants");
      std::memset(static_cast<char*>(copy) + size, 0, XNN_EXTRA_BYTES);
      value.data = std::memcpy(copy, value.data, size);
    }
  }
  return Error::Ok;
}

/// True when XNNPACK would take over from the last shapes what does not fit these: its memory for
/// scales of blocks, and lists of pointers to pixels of another number of channels.
bool Delegate::must_rebuild() const {
  if (!is_shaped_once_) return false;
  if (has_fixed_shapes_) return true;
  for (uint32_t i = 0; i < graph_.num_nodes; ++i) {
    const Node& node = graph_.nodes[i];
    const Form form = node.kind->form;
    const bool has_pointers =
        form == Form::MaxPool || form == Form::ArgMaxPool || form == Form::Resize;
    if (has_pointers && shapes_[node.inputs[0]].last() != node.channels) return true;
  }
  return false;
}

Error Delegate::build() {
  if (runtime_ != nullptr) xnn_delete_runtime(runtime_);
  runtime_ = nullptr;
  is_shaped_once_ = false;
  weights_.release();
  xnn_subgraph_t subgraph = nullptr;
  xnn_status status = xnn_create_subgraph(graph_.num_externals, 0, &subgraph);
  if (status != xnn_status_success) {
    return fail(error_of(status), "XNNPACK makes no graph: %s", name_of(status));
  }
  const Error error = define_graph(graph_, shapes_.data(), subgraph);
  if (error == Error::Ok) {
    const uint32_t flags = is_traced_ ? XNN_FLAG_BASIC_PROFILING : 0;
    status = xnn_create_runtime_v4(subgraph, weights_.cache(), workspace_->memory, pool_, flags,
                                   &runtime_);
  }
  xnn_delete_subgraph(subgraph);
  if (error != Error::Ok || status == xnn_status_success) return error;
  runtime_ = nullptr;
  return blame_node(graph_, shapes_.data(), status);
}

/// The sizes of the inputs, as XNNPACK sees them.
Error Delegate::read_inputs(etx_value* const* args, bool* changed) {
  for (uint32_t i = 0; i < graph_.num_externals; ++i) {
    if (graph_.externals[i] == kNone) continue;
    const Value& value = graph_.values[graph_.externals[i]];
    ETX_TRY(check_argument(value, *args[i]));
    if (!value.is_input) continue;
    const Tensor tensor(args[i]->payload.as_tensor);
    ETX_TRY(check_rank(value, value.shape, tensor));
    Shape& shape = shapes_[graph_.externals[i]];
    for (uint32_t k = 0; k < shape.rank; ++k) {
      const auto size = tensor.dim() == 0
                            ? size_t{1}
                            : static_cast<size_t>(tensor.sizes()[tensor.dim_order()[k]]);
      if (shape.sizes[k] == size) continue;
      shape.sizes[k] = size;
      *changed = true;
    }
  }
  return Error::Ok;
}

Error Delegate::reshape() {
  is_shaped_once_ = true;
  for (uint32_t i = 0; i < graph_.num_nodes; ++i) {
    Node& node = graph_.nodes[i];
    node.channels = shapes_[node.inputs[0]].last();
  }
  for (uint32_t i = 0; i < graph_.num_externals; ++i) {
    const uint32_t index = graph_.externals[i];
    if (index == kNone || !graph_.values[index].is_input) continue;
    const Shape& shape = shapes_[index];
    const xnn_status status = xnn_reshape_external_value(runtime_, i, shape.rank, shape.sizes);
    if (status != xnn_status_success) {
      return fail(error_of(status), "argument %u: XNNPACK refuses its shape", i);
    }
  }
  xnn_status status = xnn_reshape_runtime(runtime_);
  if (status == xnn_status_success) status = xnn_plan_memory(runtime_);
  if (status != xnn_status_success) {
    return fail(error_of(status), "XNNPACK refuses the shapes: %s", name_of(status));
  }
  for (uint32_t i = 0; i < graph_.num_externals; ++i) {
    const uint32_t index = graph_.externals[i];
    if (index == kNone || !graph_.values[index].is_output) continue;
    size_t rank = 0;
    Shape found{};
    xnn_get_external_value_shape(runtime_, i, &rank, found.sizes);
    found.rank = static_cast<uint32_t>(rank);
    if (!(found == shapes_[index])) {
      return fail(Error::Internal, "value %u: XNNPACK makes another shape than its node says",
                  graph_.values[index].id);
    }
  }
  return Error::Ok;
}

Error Delegate::resize_outputs(etx_value* const* args) {
  for (uint32_t i = 0; i < graph_.num_externals; ++i) {
    const uint32_t index = graph_.externals[i];
    if (index == kNone || !graph_.values[index].is_output) continue;
    const Shape& shape = shapes_[index];
    const Tensor tensor(args[i]->payload.as_tensor);
    ETX_TRY(check_rank(graph_.values[index], shape, tensor));
    const auto rank = static_cast<size_t>(tensor.dim());
    int64_t sizes[kMaxRank] = {};
    for (size_t k = 0; k < rank; ++k) {
      sizes[tensor.dim_order()[k]] = static_cast<int64_t>(shape.sizes[k]);
    }
    const Error error = tensor.resize(Span<const int64_t>(sizes, rank));
    if (error != Error::Ok) {
      return fail(error, "argument %u has no room for the %zu elements of value %u", i,
                  shape.count(), graph_.values[index].id);
    }
  }
  return Error::Ok;
}

/// The memory of a tensor, or a copy where the tensor ends with a page: XNNPACK reads past inputs,
/// and past outputs that it works on in place.
Error Delegate::find_memory(const Tensor& tensor, uint32_t external, void** data) {
  *data = tensor.impl()->data;
  const Value& value = graph_.values[graph_.externals[external]];
  const size_t size = static_cast<size_t>(tensor.numel()) * element_size(value.type);
  if (is_readable_past(*data, size)) return Error::Ok;
  Padded& padded = padded_[external];
  if (padded.size < size) {
    std::free(padded.memory);
    padded.size = 0;
    padded.memory = std::calloc(1, size + XNN_EXTRA_BYTES);
    if (padded.memory == nullptr) {
      return fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of argument %u", size,
                  external);
    }
    padded.size = size;
  }
  if (value.is_input) std::memcpy(padded.memory, *data, size);
  *data = padded.memory;
  return Error::Ok;
}

/// Copies results to where they belong, and widens indices.
void Delegate::hand_out(etx_value* const* args) {
  for (size_t k = 0; k < num_bound_; ++k) {
    const uint32_t external = bound_[k].id;
    const Value& value = graph_.values[graph_.externals[external]];
    if (!value.is_output) continue;
    const Tensor tensor(args[external]->payload.as_tensor);
    if (bound_[k].data != tensor.impl()->data) {
      std::memcpy(tensor.impl()->data, bound_[k].data,
                  static_cast<size_t>(tensor.numel()) * element_size(value.type));
    }
    if (tensor.scalar_type() == ScalarType::Long) widen(tensor);
  }
}

Error Delegate::bind(etx_value* const* args, bool must_set_up) {
  size_t count = 0;
  for (uint32_t i = 0; i < graph_.num_externals; ++i) {
    if (graph_.externals[i] == kNone) continue;
    void* data = nullptr;
    ETX_TRY(find_memory(Tensor(args[i]->payload.as_tensor), i, &data));
    must_set_up |= bound_[count].data != data;
    bound_[count++] = {i, data};
  }
  num_bound_ = count;
  if (!must_set_up) return Error::Ok;
  const xnn_status status = xnn_setup_runtime_v2(runtime_, count, bound_.data());
  if (status == xnn_status_success) return Error::Ok;
  shaped_threads_ = 0;
  return fail(error_of(status), "XNNPACK does not take the arguments: %s", name_of(status));
}

Error Delegate::execute(etx_context* context, etx_value* const* args, size_t num_args) {
  if (num_args != graph_.num_externals) {
    return fail(Error::InvalidArgument, "%zu arguments, expected %u", num_args,
                graph_.num_externals);
  }
  bool changed = false;
  const Error read = read_inputs(args, &changed);
  if (changed) {
    shaped_threads_ = 0;
    has_new_shapes_ = true;
  }
  ETX_TRY(read);
  const Lock lock(workspace_->mutex);
  const size_t threads = etx_xnnpack_pool_use(pool_, context);
  const bool must_shape = threads > shaped_threads_;
  if (must_shape) {
    shaped_threads_ = 0;
    ETX_TRY(infer_shapes(graph_, shapes_.data()));
    if (runtime_ == nullptr || (has_new_shapes_ && must_rebuild())) ETX_TRY(build());
    const Error reshaped = reshape();
    if (reshaped != Error::Ok) {
      xnn_delete_runtime(runtime_);
      runtime_ = nullptr;
      return reshaped;
    }
    has_new_shapes_ = false;
    shaped_threads_ = threads;
    tracer_.forget();
  }
  ETX_TRY(resize_outputs(args));
  ETX_TRY(bind(args, must_shape));
  const bool must_trace = is_traced_ && context->trace != nullptr;
  const uint64_t start = must_trace ? context->ticks() : 0;
  const xnn_status status = xnn_invoke_runtime(runtime_);
  if (status != xnn_status_success) {
    return fail(error_of(status), "XNNPACK fails: %s", name_of(status));
  }
  if (must_trace) tracer_.tell(runtime_, context, start);
  hand_out(args);
  return Error::Ok;
}

}  // namespace etx::xnnpack
