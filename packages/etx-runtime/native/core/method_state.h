// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_METHOD_STATE_H_
#define ETX_NATIVE_CORE_METHOD_STATE_H_

#include <atomic>

#include <etx/method.h>
#include <etx/program.h>

#include "format.h"

namespace etx {

/// Internal flag of a tensor without memory of its own, next to ETX_TENSOR_CONSTANT.
constexpr uint8_t kUnbound = 0x80;
/// Internal flag of a tensor that the program freed in this execution.
constexpr uint8_t kFreed = 0x40;

struct MethodState;

/// Whether each instruction keeps pointers to its values.
constexpr bool kKeepsArguments = sizeof(void*) > 4;

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
    /// et_view, view_at: the kernel gives its output the memory of its input, or part of it.
    View,
    /// The last of those with a kernel is View.
    Delegate,
    Move,
    JumpFalse,
    Jump,
    Free,
  };

  etx_kernel_fn run;
#if UINTPTR_MAX > UINT32_MAX
  etx_value** args;
#endif
  Kind kind;
  uint16_t num_args;
  /// Operator, delegate, or destination of a jump.
  uint32_t target;
};

/// A letter of a kernel's signature with its marks.
struct Parameter {
  char letter;
  bool optional;
  /// The kernel writes the tensor, or the tensors of the last list.
  bool written;
};

/// Reads the parameter at `signature`, which is not at its end; returns the next one's place.
const char* read_parameter(const char* signature, Parameter* parameter);

/// What a tensor gets back at the beginning of each execution: views change it, and it may be
/// freed.
struct Rebind {
  TensorImpl* tensor;
  const fbs::Tensor* stored;
  void* data;
  intptr_t capacity;
  bool is_constant;
};

/// The value as the program stores it, without what is built for tensors and lists of values.
EValue initial_value(const fbs::EValue& stored);

/// Tensor::set_strides, called.
void update_strides(TensorImpl& tensor);

/// Lets a kernel with bit 62 of `etx_kernel::dtypes` check its arguments; `reason` may become null.
etx_status check_at_load(MethodState& state, const Instruction& instruction, const char** reason);

/// Undoes what the last execution did to the tensor.
void restore(const Rebind& rebind);

/// An input or output.
struct Port {
  etx_value* slot;
  /// Null when it is not a tensor.
  TensorImpl* tensor;
  const fbs::EValue* stored;
  /// Null for planned tensors.
  Rebind* rebind;
  /// The program reads the slot, so a number may have any value.
  bool is_free;

  const fbs::Tensor& stored_tensor() const { return *as_tensor(*stored); }
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
  /// Executes with the tracer, all or one instruction; set with it, so that programs without one do
  /// not link it.
  Error (*run_traced)(MethodState& state, bool step);
#if UINTPTR_MAX <= UINT32_MAX
  /// Room for the values of any instruction.
  etx_value** args;
#endif
  uint64_t trace_start;
  Parallel* parallel;
  Span<EValue> values;
  Span<Instruction> instructions;
  Span<Port> inputs;
  Span<Port> outputs;
  Span<Rebind> rebinds;
  Span<const etx_kernel*> kernels;
  Span<Delegate> delegates;
  KeptData* kept;
  Failure failure;
  etx_random random;
  uint64_t budget;
  uint64_t spent;
  uint32_t pc;
  /// Only loaded and stored: some cores have no atomic exchange.
  std::atomic<bool> is_cancelled;
  bool is_running;
  bool has_free;
};

/// Writes pointers to the values that an instruction names; returns what follows the last.
etx_value** write_arguments(const MethodState& state, size_t instruction, etx_value** args);

/// The values of an instruction: inputs, then outputs. Pointers of 32 bits are not kept: they hold
/// until those of another instruction are asked for.
inline etx_value** arguments(const MethodState& state, const Instruction& instruction) {
#if UINTPTR_MAX > UINT32_MAX
  static_cast<void>(state);
  return instruction.args;
#else
  write_arguments(state, static_cast<size_t>(&instruction - state.instructions.data()), state.args);
  return state.args;
#endif
}

}  // namespace etx

#endif  // ETX_NATIVE_CORE_METHOD_STATE_H_
