// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

namespace etx {
namespace {

template <typename T>
size_t room(size_t count) {
  return (count * sizeof(T) + 7) & ~size_t{7};
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
    const fbs::EValue& value = *plan.values()->Get(i);
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
    const fbs::Instruction& instruction = *code->Get(i);
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
    specs += length(plan.delegates()->Get(i)->compile_specs());
  }
  rebinds = has_free ? tensors : unbound;
}

size_t Layout::bytes() const {
  return room<MethodState>(1) + room<EValue>(values) + room<uint8_t>(values) +
         room<TensorImpl>(tensors) + room<int32_t>(dims) + room<int64_t>(items) +
         room<etx_int_list>(int_lists) + room<etx_value*>(slots) + room<Instruction>(instructions) +
         room<Input>(inputs) + room<Output>(outputs) + room<Rebind>(rebinds) +
         room<const etx_kernel*>(operators) + room<Delegate>(delegates) +
         room<etx_compile_spec>(specs);
}

}  // namespace etx
