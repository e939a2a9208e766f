// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "method_loader.h"

namespace etx {
namespace {

bool is_view(const etx_kernel& kernel) {
  return std::strcmp(kernel.name, "executorch_prim::et_view.default") == 0;
}

}  // namespace

Error MethodLoader::decode() {
  const auto* code = instructions_of(plan_);
  for (uint32_t i = 0; i < length(code); ++i) {
    const fbs::Instruction& stored = at(code, i);
    Instruction& instruction = state_->instructions[i];
    instruction_ = i;
    if (const fbs::KernelCall* call = stored.instr_args_as_KernelCall()) {
      ETX_TRY(decode_kernel(*call, i, &instruction));
    } else if (const fbs::DelegateCall* delegate = stored.instr_args_as_DelegateCall()) {
      instruction.kind = Instruction::Kind::Delegate;
      instruction.args = take_args(delegate->args(), &instruction.num_args);
      instruction.target = static_cast<uint32_t>(delegate->delegate_index());
    } else {
      instruction.args = slots_.data();
      slots_ = slots_.subspan(2, slots_.size() - 2);
      instruction.num_args = 1;
      if (const fbs::MoveCall* move = stored.instr_args_as_MoveCall()) {
        instruction.kind = Instruction::Kind::Move;
        instruction.num_args = 2;
        instruction.args[0] = &state_->values[static_cast<size_t>(move->move_from())];
        instruction.args[1] = &state_->values[static_cast<size_t>(move->move_to())];
      } else if (const fbs::JumpFalseCall* jump = stored.instr_args_as_JumpFalseCall()) {
        decode_jump(*jump, &instruction);
      } else {
        instruction.kind = Instruction::Kind::Free;
        const int32_t value = stored.instr_args_as_FreeCall()->value_index();
        instruction.args[0] = &state_->values[static_cast<size_t>(value)];
      }
    }
  }
  instruction_ = SIZE_MAX;
  return Error::Ok;
}

etx_value** MethodLoader::take_args(const FbVector<int32_t>* args, uint16_t* count) {
  etx_value** taken = slots_.data();
  *count = static_cast<uint16_t>(length(args));
  for (uint32_t i = 0; i < *count; ++i) {
    taken[i] = &state_->values[static_cast<size_t>(args->Get(i))];
  }
  slots_ = slots_.subspan(*count, slots_.size() - *count);
  return taken;
}

void MethodLoader::decode_jump(const fbs::JumpFalseCall& jump, Instruction* instruction) {
  const auto condition = static_cast<size_t>(jump.cond_value_index());
  const EValue& value = state_->values[condition];
  const bool never = value.is_bool() && !value.to_bool() && (flags_[condition] & kWritten) == 0;
  instruction->kind = never ? Instruction::Kind::Jump : Instruction::Kind::JumpFalse;
  instruction->args[0] = &state_->values[condition];
  instruction->target = static_cast<uint32_t>(jump.destination_instruction());
}

Error MethodLoader::decode_kernel(const fbs::KernelCall& call, size_t index,
                                  Instruction* instruction) {
  const auto op = static_cast<uint32_t>(call.op_index());
  const etx_kernel& kernel = *state_->kernels[op];
  instruction->run = kernel.run;
  instruction->target = op;
  instruction->args = take_args(call.args(), &instruction->num_args);
  instruction->kind = Instruction::Kind::Kernel;
  if (std::strcmp(kernel.signature, "*") == 0) {
    instruction->kind = Instruction::Kind::AnyKernel;
    return Error::Ok;
  }
  bool writes_number = false;
  uint16_t used = 0;
  for (const char* letter = kernel.signature; *letter != '\0'; ++used) {
    const char kind = *letter++;
    const bool writes = *letter == '!';
    if (writes) ++letter;
    const bool optional = *letter == '?';
    if (optional) ++letter;
    writes_number |= kind == 'v';
    Error error = Error::InvalidProgram;
    if (used < instruction->num_args) {
      const etx_value& value = *instruction->args[used];
      error = check_argument(kind, optional, value);
      const bool is_last_list = kind == 'L' && *letter == '\0';
      const uint8_t flags = flags_of(value);
      const bool is_constant = (writes || is_last_list) && (flags & kConstant) != 0;
      if (error == Error::Ok && is_constant) error = Error::NotSupported;
      if ((flags & kChecked) != 0) instruction->kind = Instruction::Kind::CheckedKernel;
    }
    if (error == Error::Ok) continue;
    Failure failure;
    failure.error = error;
    failure.reason = used >= instruction->num_args ? "too few arguments for the kernel"
                     : error == Error::NotSupported
                         ? "the kernel would write to a constant"
                         : "an argument is not of the kind the kernel takes";
    failure.name = text(at(plan_.operators(), op).name());
    failure.overload = text(at(plan_.operators(), op).overload());
    failure.instruction = static_cast<int32_t>(index);
    failure.index = used;
    failure.error = Error::InvalidProgram;
    return report(failures_, failure);
  }
  if (writes_number) instruction->kind = Instruction::Kind::ScalarKernel;
  if (is_view(kernel)) {
    if (used < 3 || instruction->args[0]->tag != ETX_TAG_TENSOR ||
        instruction->args[2]->tag != ETX_TAG_TENSOR) {
      return fail(Error::InvalidProgram, "et_view takes a tensor, a size and its result");
    }
    instruction->kind = Instruction::Kind::View;
  }
  return Error::Ok;
}

Error MethodLoader::check_argument(char letter, bool optional, const etx_value& value) {
  const uint32_t tag = value.tag;
  if (optional && tag == ETX_TAG_NONE) return Error::Ok;
  const bool is_number = tag == ETX_TAG_INT || tag == ETX_TAG_DOUBLE || tag == ETX_TAG_BOOL;
  bool fits = false;
  switch (letter) {
    case 'T': fits = tag == ETX_TAG_TENSOR; break;
    case 'i': fits = tag == ETX_TAG_INT; break;
    case 'd': fits = tag == ETX_TAG_DOUBLE || tag == ETX_TAG_INT; break;
    case 'b': fits = tag == ETX_TAG_BOOL; break;
    case 's':
    case 'v': fits = is_number; break;
    case 'c': fits = tag == ETX_TAG_STRING; break;
    case 'I': fits = tag == ETX_TAG_LIST_INT; break;
    case 'D': fits = tag == ETX_TAG_LIST_DOUBLE; break;
    case 'B': fits = tag == ETX_TAG_LIST_BOOL; break;
    case 'L': fits = tag == ETX_TAG_LIST_TENSOR; break;
    case 'O': fits = tag == ETX_TAG_LIST_OPTIONAL_TENSOR || tag == ETX_TAG_LIST_TENSOR; break;
    default: break;
  }
  return fits ? Error::Ok : Error::InvalidType;
}

}  // namespace etx
