// SPDX-License-Identifier: BSD-3-Clause
#include "verify.h"

namespace etx {

Error Verifier::fail(const char* reason, const void* where, Error error, size_t index) {
  Failure failure;
  failure.error = error;
  failure.reason = reason;
  failure.name = method_;
  if (where != nullptr) failure.offset = static_cast<const uint8_t*>(where) - base_;
  if (index != SIZE_MAX) failure.index = static_cast<int32_t>(index);
  return report(failures_, failure);
}

Error Verifier::fail(const char* reason, const void* where) {
  return fail(reason, where, Error::InvalidProgram);
}

Error Verifier::check_program() {
  ETX_TRY(check_segments());
  for (uint32_t i = 0; i < length(program_.execution_plan()); ++i) {
    ETX_TRY(check_plan(at(program_.execution_plan(), i)));
  }
  return Error::Ok;
}

Error Verifier::check_segments() {
  const size_t count = length(program_.segments());
  for (uint32_t i = 0; i < count; ++i) {
    const fbs::DataSegment& segment = at(program_.segments(), i);
    const uint64_t room = file_size_ - segment_base_;
    if (segment.offset() > room || segment.size() > room - segment.offset()) {
      return fail("a segment ends after the file", &segment, Error::InvalidProgram, i);
    }
  }
  if (program_.constant_segment() != nullptr) {
    ETX_TRY(check_offsets(*program_.constant_segment()));
    if (length(program_.constant_segment()->offsets()) > 1 &&
        length(program_.constant_buffer()) > 0) {
      return fail("both constant_segment and constant_buffer hold constants", &program_);
    }
  }
  for (uint32_t i = 0; i < length(program_.mutable_data_segments()); ++i) {
    ETX_TRY(check_offsets(at(program_.mutable_data_segments(), i)));
  }
  for (uint32_t i = 0; i < length(program_.named_data()); ++i) {
    const fbs::NamedData& entry = at(program_.named_data(), i);
    if (entry.key() == nullptr || !equals(entry.key(), entry.key()->c_str())) {
      return fail("named data has no key, or one with a zero byte", &entry);
    }
    if (entry.segment_index() >= count) return fail("named data has no segment", &entry);
  }
  return Error::Ok;
}

Error Verifier::check_offsets(const fbs::SubsegmentOffsets& subsegment) {
  if (length(subsegment.offsets()) <= 1) return Error::Ok;
  if (subsegment.segment_index() >= length(program_.segments())) {
    return fail("the constants' segment does not exist", &subsegment);
  }
  const uint64_t size = at(program_.segments(), subsegment.segment_index()).size();
  for (uint32_t i = 0; i < subsegment.offsets()->size(); ++i) {
    if (subsegment.offsets()->Get(i) > size) {
      return fail("a constant begins after its segment", &subsegment, Error::InvalidProgram, i);
    }
  }
  return Error::Ok;
}

Error Verifier::check_plan(const fbs::ExecutionPlan& plan) {
  if (plan.name() == nullptr) return fail("a method has no name", &plan);
  if (!equals(plan.name(), plan.name()->c_str())) {
    return fail("a method's name holds a zero byte", &plan);
  }
  method_ = plan.name()->c_str();
  const auto* sizes = plan.non_const_buffer_sizes();
  for (uint32_t i = 0; i < length(sizes); ++i) {
    if (sizes->Get(i) < 0 || static_cast<uint64_t>(sizes->Get(i)) > PTRDIFF_MAX) {
      return fail("the size of a planned arena is negative", &plan, Error::InvalidProgram, i);
    }
  }
  for (uint32_t i = 0; i < length(plan.non_const_buffer_device()); ++i) {
    if (at(plan.non_const_buffer_device(), i).device_type() != fbs::DeviceType::CPU) {
      return fail("a planned arena is on another device than the CPU", &plan, Error::NotSupported);
    }
  }
  if (length(plan.chains()) > 1) {
    return fail("a method has several chains", &plan, Error::NotSupported);
  }
  ETX_TRY(check_values(plan));
  ETX_TRY(check_io(plan));
  ETX_TRY(check_operators(plan));
  ETX_TRY(check_delegates(plan));
  const auto* instructions = instructions_of(plan);
  const size_t count = length(instructions);
  if (count > INT32_MAX / 2) return fail("too many instructions", &plan);
  for (uint32_t i = 0; i < count; ++i) {
    ETX_TRY(check_instruction(plan, at(instructions, i), count));
  }
  method_ = nullptr;
  return Error::Ok;
}

Error Verifier::check_io(const fbs::ExecutionPlan& plan) {
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    if (!has_value(plan, plan.inputs()->Get(i))) {
      return fail("an input is no value of the method", &plan, Error::InvalidProgram, i);
    }
    const auto index = static_cast<uint32_t>(plan.inputs()->Get(i));
    const fbs::EValue& value = value_at(plan, index);
    const fbs::Tensor* tensor = value.val_as_Tensor();
    if (tensor != nullptr ? is_constant(*tensor) : value.val_type() > fbs::KernelTypes::String) {
      return fail("an input is a constant or a list", &value, Error::InvalidProgram, i);
    }
  }
  for (uint32_t i = 0; i < length(plan.outputs()); ++i) {
    if (!has_value(plan, plan.outputs()->Get(i))) {
      return fail("an output is no value of the method", &plan, Error::InvalidProgram, i);
    }
  }
  return Error::Ok;
}

Error Verifier::check_operators(const fbs::ExecutionPlan& plan) {
  for (uint32_t i = 0; i < length(plan.operators()); ++i) {
    const fbs::Operator& op = at(plan.operators(), i);
    if (op.name() == nullptr) return fail("an operator has no name", &op);
  }
  return Error::Ok;
}

Error Verifier::check_delegates(const fbs::ExecutionPlan& plan) {
  for (uint32_t i = 0; i < length(plan.delegates()); ++i) {
    const fbs::BackendDelegate& delegate = at(plan.delegates(), i);
    if (delegate.id() == nullptr) return fail("a delegate has no id", &delegate);
    const fbs::BackendDelegateDataReference* data = delegate.processed();
    if (data == nullptr) return fail("a delegate has no data", &delegate);
    const size_t count = data->location() == fbs::DataLocation::SEGMENT
                             ? length(program_.segments())
                             : length(program_.backend_delegate_data());
    if (data->index() >= count) return fail("a delegate's data does not exist", data);
    for (uint32_t k = 0; k < length(delegate.compile_specs()); ++k) {
      const fbs::CompileSpec& spec = at(delegate.compile_specs(), k);
      if (spec.key() == nullptr) return fail("a compile spec has no key", &spec);
    }
  }
  return Error::Ok;
}

Error Verifier::check_args(const fbs::ExecutionPlan& plan, const FbVector<int32_t>* args) {
  if (length(args) > UINT16_MAX) return fail("an instruction has too many arguments", args);
  for (uint32_t i = 0; i < length(args); ++i) {
    if (!has_value(plan, args->Get(i))) {
      return fail("an argument is no value of the method", args, Error::InvalidProgram, i);
    }
  }
  return Error::Ok;
}

Error Verifier::check_move(const fbs::ExecutionPlan& plan, const fbs::MoveCall& move) {
  if (!has_value(plan, move.move_from()) || !has_value(plan, move.move_to())) {
    return fail("a move refers to no value of the method", &move);
  }
  const fbs::EValue& from = value_at(plan, move.move_from());
  const fbs::EValue& to = value_at(plan, move.move_to());
  bool same = from.val_type() == to.val_type();
  if (same && from.val_type() == fbs::KernelTypes::Tensor) {
    const fbs::Tensor& a = *from.val_as_Tensor();
    const fbs::Tensor& b = *to.val_as_Tensor();
    same = a.scalar_type() == b.scalar_type() && length(a.sizes()) == length(b.sizes());
  }
  if (!same) return fail("a move changes the kind, dtype or rank of a value", &move);
  return Error::Ok;
}

Error Verifier::check_instruction(const fbs::ExecutionPlan& plan,
                                  const fbs::Instruction& instruction, size_t count) {
  if (instruction.instr_args() == nullptr) return fail("an instruction is empty", &instruction);
  switch (instruction.instr_args_type()) {
    case fbs::InstructionArguments::KernelCall: {
      const fbs::KernelCall& call = *instruction.instr_args_as_KernelCall();
      if (call.op_index() < 0 || static_cast<size_t>(call.op_index()) >= length(plan.operators())) {
        return fail("a kernel call has no operator", &call);
      }
      return check_args(plan, call.args());
    }
    case fbs::InstructionArguments::DelegateCall: {
      const fbs::DelegateCall& call = *instruction.instr_args_as_DelegateCall();
      if (call.delegate_index() < 0 ||
          static_cast<size_t>(call.delegate_index()) >= length(plan.delegates())) {
        return fail("a delegate call has no delegate", &call);
      }
      return check_args(plan, call.args());
    }
    case fbs::InstructionArguments::MoveCall:
      return check_move(plan, *instruction.instr_args_as_MoveCall());
    case fbs::InstructionArguments::JumpFalseCall: {
      const fbs::JumpFalseCall& jump = *instruction.instr_args_as_JumpFalseCall();
      if (jump.destination_instruction() < 0 ||
          static_cast<size_t>(jump.destination_instruction()) > count) {
        return fail("a jump leaves the method", &jump);
      }
      if (!has_value(plan, jump.cond_value_index())) return fail("a jump has no condition", &jump);
      const fbs::EValue& value = value_at(plan, jump.cond_value_index());
      const fbs::Tensor* tensor = value.val_as_Tensor();
      const bool is_bool = tensor != nullptr ? tensor->scalar_type() == fbs::ScalarType::BOOL
                                             : value.val_type() == fbs::KernelTypes::Bool ||
                                                   value.val_type() == fbs::KernelTypes::Int;
      return is_bool ? Error::Ok : fail("a jump's condition is no bool and no integer", &jump);
    }
    case fbs::InstructionArguments::FreeCall: {
      const fbs::FreeCall& call = *instruction.instr_args_as_FreeCall();
      const bool is_tensor = has_value(plan, call.value_index()) &&
                             tensor_of(plan, static_cast<size_t>(call.value_index())) != nullptr;
      return is_tensor ? Error::Ok : fail("a free call has no tensor", &call);
    }
    default: return fail("an instruction of an unknown kind", &instruction, Error::NotSupported);
  }
}

}  // namespace etx
