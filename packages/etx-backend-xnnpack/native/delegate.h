// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_DELEGATE_H_
#define ETX_XNNPACK_DELEGATE_H_

#include <etx/tensor.h>

#include "graph/blob.h"
#include "options.h"
#include "threads/pool.h"
#include "tracing.h"
#include "weights.h"
#include "workspace.h"

namespace etx::xnnpack {

/// A graph that XNNPACK runs. Not for several threads at once.
class Delegate {
 public:
  Delegate() = default;
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;
  ~Delegate();

  /// Once. `context`, blob and named data as etx_backend::init gets them.
  /// Errors: those of read_blob, read_graph and define_graph.
  Error load(etx_init_context* context, const void* blob, size_t size, const Options& options);

  /// Errors: InvalidArgument (the message names argument, node and value), MemoryAllocationFailed.
  Error execute(etx_context* context, etx_value* const* args, size_t num_args);

 private:
  /// A copy of an argument, with bytes behind it that may be read.
  struct Padded {
    void* memory;
    size_t size;
  };

  Error pad_constants(etx_init_context* context);
  bool must_rebuild() const;
  Error build();
  Error read_inputs(etx_value* const* args, bool* changed);
  Error reshape();
  Error resize_outputs(etx_value* const* args);
  Error bind(etx_value* const* args, bool must_set_up);
  Error find_memory(const Tensor& tensor, uint32_t external, void** data);
  void hand_out(etx_value* const* args);

  Graph graph_;
  Array<Shape> shapes_;
  Array<xnn_external_value> bound_;
  size_t num_bound_ = 0;
  Array<Padded> padded_;
  WeightFolder weight_folder_;
  Weights weights_;
  xnn_runtime_t runtime_ = nullptr;
  pthreadpool_t pool_ = nullptr;
  Workspace* workspace_ = nullptr;
  OperatorTracer tracer_;
  size_t shaped_threads_ = 0;      ///< 0: the shapes are not set.
  bool has_fixed_shapes_ = false;  ///< XNNPACK cannot give the graph other shapes.
  bool is_shaped_once_ = false;    ///< Since it was built.
  bool is_traced_ = false;         ///< Operators are measured.
  bool has_new_shapes_ = false;    ///< That XNNPACK has not got yet.
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_DELEGATE_H_
