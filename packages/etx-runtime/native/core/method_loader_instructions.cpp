// SPDX-License-Identifier: BSD-3-Clause
#include "method_loader.h"

namespace etx {
namespace {

/// The kinds of value that a parameter's letter takes, as bits by tag.
bool takes(const Parameter& parameter, uint32_t tag) {
  struct Row {
    char letter;
    uint16_t tags;
  };
  constexpr unsigned kNumber = 1u << ETX_TAG_INT | 1u << ETX_TAG_DOUBLE | 1u << ETX_TAG_BOOL;
  constexpr unsigned kTensors = 1u << ETX_TAG_LIST_TENSOR;
  static constexpr Row kRows[] = {
      {'T', 1u << ETX_TAG_TENSOR},
      {'i', 1u << ETX_TAG_INT},
      {'d', 1u << ETX_TAG_DOUBLE | 1u << ETX_TAG_INT},
      {'b', 1u << ETX_TAG_BOOL},
      {'s', kNumber},
      {'v', kNumber},
      {'c', 1u << ETX_TAG_STRING},
      {'I', 1u << ETX_TAG_LIST_INT},
      {'D', 1u << ETX_TAG_LIST_DOUBLE},
      {'B', 1u << ETX_TAG_LIST_BOOL},
      {'L', kTensors},
      {'O', kTensors | 1u << ETX_TAG_LIST_OPTIONAL_TENSOR},
  };
  if (parameter.optional && tag == ETX_TAG_NONE) return true;
  for (const Row& row : kRows) {
    if (row.letter == parameter.letter) return (row.tags >> tag & 1) != 0;
  }
  return false;
}

}  // namespace

etx_value** write_arguments(const MethodState& state, size_t instruction, etx_value** args) {
  const Call call = call_at(instructions_of(*state.plan), instruction);
  const uint32_t own[] = {call.first, call.second};
  const auto* index =
      call.args == nullptr ? own : reinterpret_cast<const uint32_t*>(call.args->data());
  for (uint32_t i = state.instructions[instruction].num_args; i != 0; --i) {
    *args++ = &state.values[*index++];
  }
  return args;
}

void MethodLoader::decode() {
  constexpr Instruction::Kind kKinds[] = {Instruction::Kind::Kernel, Instruction::Kind::Delegate,
                                          Instruction::Kind::Move, Instruction::Kind::JumpFalse,
                                          Instruction::Kind::Free};
  const auto* code = instructions_of(plan_);
  for (uint32_t i = 0; i < state_->instructions.size(); ++i) {
    const Call call = call_at(code, i);
    Instruction& instruction = state_->instructions[i];
    instruction.kind = kKinds[static_cast<size_t>(call.kind) - 1];
    instruction.target = call.second;
    instruction.num_args = instruction.kind == Instruction::Kind::Move ? 2 : 1;
    if (call.is_call()) {
      instruction.target = call.first;
      instruction.num_args = static_cast<uint16_t>(length(call.args));
    }
#if UINTPTR_MAX > UINT32_MAX
    instruction.args = slots_;
    slots_ = write_arguments(*state_, i, slots_);
#else
    state_->args = slots_;
#endif
  }
}

Error MethodLoader::check_kernels() {
  for (uint32_t i = 0; i < state_->instructions.size(); ++i) {
    Instruction& instruction = state_->instructions[i];
    if (instruction.kind == Instruction::Kind::JumpFalse) {
      const EValue& condition = *static_cast<const EValue*>(arguments(*state_, instruction)[0]);
      const bool changes = (flags_of(condition) & kWritten) != 0;
      if (condition.is_bool() && !condition.to_bool() && !changes) {
        instruction.kind = Instruction::Kind::Jump;
      }
    }
    if (instruction.kind == Instruction::Kind::Kernel) ETX_TRY(check_kernel(i));
  }
  return Error::Ok;
}

Error MethodLoader::check_kernel(size_t index) {
  Instruction& instruction = state_->instructions[index];
  etx_value** const args = arguments(*state_, instruction);
  const etx_kernel& general = *state_->kernels[instruction.target];
  const etx_kernel& kernel = *request_.registry->find_kernel(general, {args, instruction.num_args});
  instruction.run = kernel.run;
  if (equals(kernel.signature, "*")) {
    instruction.kind = Instruction::Kind::AnyKernel;
    return Error::Ok;
  }
  bool writes_number = false;
  unsigned any = 0;
  uint32_t used = 0;
  const char* reason = nullptr;
  for (const char* signature = kernel.signature; *signature != '\0'; ++used) {
    Parameter parameter;
    signature = read_parameter(signature, &parameter);
    writes_number |= parameter.letter == 'v';
    if (used >= instruction.num_args) {
      reason = "too few arguments for the kernel";
    } else {
      const etx_value& value = *args[used];
      const uint8_t flags = flags_of(value);
      any |= flags;
      if (!takes(parameter, value.tag)) {
        reason = "an argument is not of the kind the kernel takes";
      } else if (parameter.written && (flags & kConstant) != 0) {
        reason = "the kernel would write to a constant";
      }
      if ((flags & kChecked) != 0) instruction.kind = Instruction::Kind::CheckedKernel;
    }
    if (reason == nullptr) continue;
    failure_.index = static_cast<int32_t>(used);
    return fail_instruction(index, Error::InvalidProgram, reason);
  }
  if (writes_number) instruction.kind = Instruction::Kind::ScalarKernel;
  if (equals(kernel.name, "executorch_prim::et_view.default") ||
      equals(kernel.name, "etx::view_at.default")) {
    if (used < 3 || args[0]->tag != ETX_TAG_TENSOR || args[2]->tag != ETX_TAG_TENSOR) {
      return fail_instruction(index, Error::InvalidProgram,
                              "a view takes a tensor, a size or place, and its result");
    }
    instruction.kind = Instruction::Kind::View;
  }
  if ((kernel.dtypes >> 62 & 1) == 0 || (any & kWritten) != 0) return Error::Ok;
  const etx_status status = check_at_load(*state_, instruction, &reason);
  if (status == 0) return Error::Ok;
  return fail_instruction(index, static_cast<Error>(status), reason);
}

Error MethodLoader::fail_instruction(size_t index, Error error, const char* reason) {
  const Instruction& instruction = state_->instructions[index];
  failure_.instruction = static_cast<int32_t>(index);
  failure_.args = {arguments(*state_, instruction), instruction.num_args};
  return fail_operator(instruction.target, error, reason);
}

}  // namespace etx
