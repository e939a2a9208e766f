// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_STATE_H_
#define ETX_NATIVE_CORE_STATE_H_

#include <atomic>

#include <etx/method.h>
#include <etx/program.h>

#include "format.h"

namespace etx {

/// Internal flag of a tensor without memory of its own, next to ETX_TENSOR_CONSTANT.
constexpr uint8_t kUnbound = 0x80;
/// Internal flag of a tensor that the program freed in this execution.
constexpr uint8_t kFreed = 0x40;

/// A decoded instruction: everything the loop needs.
struct Instruction {
  enum class Kind : uint16_t {
    Kernel,
    /// A kernel some of whose tensors may lack memory or be constant when it runs.
    CheckedKernel,
    /// A kernel that writes number slots.
    ScalarKernel,
    /// A kernel that takes any arguments.
    AnyKernel,
    /// et_view: the kernel gives its output the memory of its input.
    View,
    Delegate,
    Move,
    JumpFalse,
    Jump,
    Free,
  };

  etx_kernel_fn run;
  etx_value** args;
  Kind kind;
  uint16_t num_args;
  /// Operator, delegate, or destination of a jump.
  uint32_t target;
};

/// What a tensor gets back at the beginning of each execution: views change it, and it may be
/// freed.
struct Rebind {
  TensorImpl* tensor;
  const fbs::Tensor* stored;
  void* data;
  int64_t capacity;
  bool is_constant;
};

/// Undoes what the last execution did to the tensor.
void restore(const Rebind& rebind);

struct Input {
  etx_value* slot;
  TensorImpl* tensor;
  const fbs::EValue* stored;
  /// Null for planned tensors.
  Rebind* rebind;
  /// The program reads the slot, so a number may have any value.
  bool is_free;
};

struct Output {
  etx_value* slot;
  TensorImpl* tensor;
  const fbs::Tensor* stored;
  Rebind* rebind;
};

struct Delegate {
  const etx_backend* backend;
  void* handle;
  FreeableBuffer blob;
};

/// Named data that a backend asked for; kept until the method goes.
struct KeptData {
  KeptData* next;
  FreeableBuffer data;
};

struct MethodState {
  const Program* program;
  const fbs::ExecutionPlan* plan;
  MemoryManager* memory;
  const NamedDataMap* data;
  /// Null without `data`.
  detail::FindExternal find_external;
  EventTracer* tracer;
  /// Executes with the tracer; set with it, so that programs without one do not link it.
  Error (*run_traced)(MethodState& state);
  Parallel* parallel;
  Span<EValue> values;
  Span<Instruction> instructions;
  Span<Input> inputs;
  Span<Output> outputs;
  Span<Rebind> rebinds;
  Span<const etx_kernel*> kernels;
  Span<Delegate> delegates;
  KeptData* kept;
  Failure failure;
  uint64_t budget;
  uint64_t spent;
  uint32_t pc;
  /// Loaded and stored alone: some cores have no atomic exchange.
  std::atomic<bool> is_cancelled;
  bool is_running;
  bool has_free;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_STATE_H_
