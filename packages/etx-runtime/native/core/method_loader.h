// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_METHOD_LOADER_H_
#define ETX_NATIVE_CORE_METHOD_LOADER_H_

#include "layout.h"

namespace etx {

/// Builds a MethodState from a verified plan, in one block of the method's arena.
class MethodLoader {
 public:
  MethodLoader(const Program& program, const fbs::ExecutionPlan& plan, MemoryManager* memory,
               const Registry& registry, const NamedDataMap* data, detail::FindExternal find,
               FailureSink* failures, Parallel* parallel)
      : program_(program),
        plan_(plan),
        memory_(memory),
        registry_(registry),
        data_(data),
        find_external_(find),
        failures_(failures),
        parallel_(parallel) {}

  Result<Method> load();

  /// Puts the stored initial values into planned memory, after zeros when `zero` is set.
  static Error reset_memory(const MethodState& state, bool zero);

  Error init_delegates();

 private:
  /// What is known of a value before the program runs.
  enum Flag : uint8_t {
    /// A move may put another handle there.
    kMoveTarget = 1,
    /// The number changes.
    kWritten = 2,
    /// Its tensors may lack memory, or be constant, when a kernel runs.
    kChecked = 4,
    /// A constant tensor, or a list with one.
    kConstant = 8,
    /// An instruction reads it.
    kRead = 16,
  };

  Error fail(Error error, const char* reason, const void* where = nullptr, size_t index = SIZE_MAX);
  Error carve();
  template <typename T>
  Span<T> take(size_t count);

  Error resolve_operators();
  void mark_values();
  void mark_read(int32_t value);
  Error build_values();
  Error build_tensor(const fbs::Tensor& stored, TensorImpl* tensor);
  Result<void*> data_of(const fbs::Tensor& stored);
  void build_int_list(const fbs::IntList& stored, EValue* value);
  void build_tensor_list(const FbVector<int32_t>* items, Tag tag, EValue* value);
  void build_io();
  Rebind* rebind_of(const TensorImpl* tensor) const;
  Error zero_arenas();

  Error decode();
  Error decode_kernel(const fbs::KernelCall& call, size_t index, Instruction* instruction);
  Error check_argument(char letter, bool optional, const etx_value& value);
  uint8_t& flags_of(const etx_value& value);
  void mark_checked();
  void decode_jump(const fbs::JumpFalseCall& jump, Instruction* instruction);
  etx_value** take_args(const FbVector<int32_t>* args, uint16_t* count);

  Error check_keys();
  Error init_delegate(const fbs::BackendDelegate& stored, Span<etx_compile_spec> specs);
  Result<FreeableBuffer> blob_of(const fbs::BackendDelegate& stored);

  const Program& program_;
  const fbs::ExecutionPlan& plan_;
  MemoryManager* memory_;
  const Registry& registry_;
  const NamedDataMap* data_;
  detail::FindExternal find_external_;
  FailureSink* failures_;
  Parallel* parallel_;
  MethodState* state_ = nullptr;
  uint8_t* block_ = nullptr;
  Span<uint8_t> flags_;
  Span<TensorImpl> tensors_;
  Span<int32_t> dims_;
  Span<int64_t> items_;
  Span<etx_int_list> int_lists_;
  Span<etx_value*> slots_;
  Span<etx_compile_spec> specs_;
  size_t instruction_ = SIZE_MAX;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_METHOD_LOADER_H_
