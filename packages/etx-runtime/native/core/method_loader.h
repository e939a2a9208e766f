// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_METHOD_LOADER_H_
#define ETX_NATIVE_CORE_METHOD_LOADER_H_

#include "layout.h"

namespace etx {

/// Builds a MethodState from a verified plan, in one block of the method's arena.
class MethodLoader {
 public:
  MethodLoader(const Program& program, const fbs::ExecutionPlan& plan,
               const detail::LoadRequest& request)
      : program_(program), plan_(plan), request_(request) {
    failure_.name = text(plan.name());
  }

  Result<Method> load();

  /// Puts the stored initial values into planned memory, after zeros when `zero` is set.
  static Error reset_memory(MethodState* state, bool zero);

  Error init_delegates();

 private:
  /// What is known of a value before the program runs.
  enum Flag : uint8_t {
    /// A move may put another handle there.
    kMoveTarget = 1,
    /// The number, an item of the list, or the tensor's handle changes.
    kWritten = 2,
    /// Its tensors may lack memory, or be constant, when a kernel runs.
    kChecked = 4,
    /// A constant tensor, or a list with one.
    kConstant = 8,
    /// An instruction reads it.
    kRead = 16,
  };

  Error fail(Error error, const char* reason);
  Error fail_arena(size_t index, Error error, const char* reason);
  Error fail_operator(size_t index, Error error, const char* reason);
  Error fail_instruction(size_t index, Error error, const char* reason);
  Error carve();

  Error resolve_operators();
  Error prepare_arenas(bool zero);
  /// Of a tensor that has bytes; prepare_arenas found that there is room.
  uint8_t* planned_address(const fbs::AllocationDetails& place) const;
  Error build_values();
  Error build_tensor(const fbs::Tensor& stored, TensorImpl* tensor);
  void build_list(const void* items, EValue* value);
  void build_ports(const FbVector<int32_t>* values, Span<Port> ports);
  /// The bytes of a constant or of an initial value. Errors are reported.
  Error find_data(const fbs::Tensor& stored, const void** data);
  Error write_initial_values();

  void decode();
  void mark_values();
  void mark_read(const etx_value& value);
  void mark_checked();
  Error check_kernels();
  Error check_kernel(size_t index);
  uint8_t& flags_of(const etx_value& value);

  Error check_keys();
  Error init_delegate(const fbs::BackendDelegate& stored, Span<etx_compile_spec> specs);
  Error find_blob(const fbs::BackendDelegate& stored, FreeableBuffer* blob);

  const fbs::Program& root() const { return *static_cast<const fbs::Program*>(program_.root_); }

  const Program& program_;
  const fbs::ExecutionPlan& plan_;
  const detail::LoadRequest& request_;
  Failure failure_;
  MethodState* state_ = nullptr;
  /// What is left of the block's parts.
  uint8_t* flags_ = nullptr;
  TensorImpl* tensors_ = nullptr;
  int32_t* dims_ = nullptr;
  int64_t* items_ = nullptr;
  etx_int_list* int_lists_ = nullptr;
  etx_value** slots_ = nullptr;
  etx_compile_spec* specs_ = nullptr;
  uint32_t num_rebinds_ = 0;
  /// The mutable data segment that was read last.
  FreeableBuffer segment_;
  uint64_t segment_index_ = UINT64_MAX;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_METHOD_LOADER_H_
