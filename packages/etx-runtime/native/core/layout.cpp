// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

namespace etx {
namespace {

/// More than any allocator has, with room for the alignment; a multiple of 8.
constexpr size_t kMost = SIZE_MAX - 63;

/// Adds the room that `count` objects take, up to kMost.
void add(size_t count, size_t size, size_t* total) {
  const bool fits = count <= (kMost - *total) / size;
  *total = fits ? (*total + count * size + 7) & ~size_t{7} : kMost;
}

}  // namespace

Layout::Layout(const fbs::ExecutionPlan& plan) {
  values = length(plan.values());
  inputs = length(plan.inputs());
  outputs = length(plan.outputs());
  operators = length(plan.operators());
  delegates = length(plan.delegates());
  bool has_free = false;
  size_t unbound = 0;
  for (uint32_t i = 0; i < values; ++i) {
    const fbs::EValue& value = value_at(plan, i);
    if (const fbs::Tensor* tensor = value.val_as_Tensor()) {
      ++tensors;
      dims += length(tensor->sizes()) * (is_dynamic(*tensor) ? 2 : 1);
      if (is_unbound(*tensor)) ++unbound;
    } else if (const fbs::IntList* ints = value.val_as_IntList()) {
      ++int_lists;
      items += length(ints->items());
      slots += length(ints->items());
    } else if (const fbs::TensorList* list = value.val_as_TensorList()) {
      slots += length(list->items());
    } else if (const fbs::OptionalTensorList* optional = value.val_as_OptionalTensorList()) {
      slots += length(optional->items());
    }
  }
  const auto* code = instructions_of(plan);
  instructions = length(code);
  for (uint32_t i = 0; i < instructions; ++i) {
    const fbs::Instruction& instruction = at(code, i);
    if (const fbs::KernelCall* kernel = instruction.instr_args_as_KernelCall()) {
      slots += length(kernel->args());
    } else if (const fbs::DelegateCall* call = instruction.instr_args_as_DelegateCall()) {
      slots += length(call->args());
    } else {
      slots += 2;
      has_free |= instruction.instr_args_type() == fbs::InstructionArguments::FreeCall;
    }
  }
  for (uint32_t i = 0; i < delegates; ++i) {
    specs += length(at(plan.delegates(), i).compile_specs());
  }
  rebinds = has_free ? tensors : unbound;
}

size_t Layout::bytes() const {
  size_t total = 0;
  add(1, sizeof(MethodState), &total);
  add(values, sizeof(EValue), &total);
  add(values, sizeof(uint8_t), &total);
  add(tensors, sizeof(TensorImpl), &total);
  add(dims, sizeof(int32_t), &total);
  add(items, sizeof(int64_t), &total);
  add(int_lists, sizeof(etx_int_list), &total);
  add(slots, sizeof(etx_value*), &total);
  add(instructions, sizeof(Instruction), &total);
  add(inputs, sizeof(Input), &total);
  add(outputs, sizeof(Output), &total);
  add(rebinds, sizeof(Rebind), &total);
  add(operators, sizeof(const etx_kernel*), &total);
  add(delegates, sizeof(Delegate), &total);
  add(specs, sizeof(etx_compile_spec), &total);
  return total;
}

}  // namespace etx
