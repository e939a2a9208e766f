// SPDX-License-Identifier: BSD-3-Clause
#include "method_loader.h"

#include <cstring>

namespace etx {
namespace {

int32_t first_call_of(const fbs::ExecutionPlan& plan, uint32_t op) {
  const auto* code = instructions_of(plan);
  for (uint32_t i = 0; i < length(code); ++i) {
    const fbs::KernelCall* call = code->Get(i)->instr_args_as_KernelCall();
    if (call != nullptr && static_cast<uint32_t>(call->op_index()) == op) {
      return static_cast<int32_t>(i);
    }
  }
  return -1;
}

}  // namespace

Result<Method> Program::load_untraced(const char* name, MemoryManager* memory,
                                      const Registry& registry, const NamedDataMap* data,
                                      detail::FindExternal find, FailureSink* failures,
                                      Parallel* parallel) const {
  auto meta = method_meta(name);
  if (!meta.ok()) {
    Failure failure;
    failure.error = meta.error();
    failure.reason = "the program has no such method";
    failure.name = name;
    return report(failures, failure);
  }
  return MethodLoader(*this, *as_plan(meta->plan_), memory, registry, data, find, failures,
                      parallel)
      .load();
}

Error MethodLoader::fail(Error error, const char* reason, const void* where, size_t index) {
  Failure failure;
  failure.error = error;
  failure.reason = reason;
  failure.name = text(plan_.name());
  if (where != nullptr) {
    failure.offset = static_cast<const uint8_t*>(where) - program_.program_data_.bytes();
  }
  if (index != SIZE_MAX) failure.index = static_cast<int32_t>(index);
  if (instruction_ != SIZE_MAX) failure.instruction = static_cast<int32_t>(instruction_);
  return report(failures_, failure);
}

Result<Method> MethodLoader::load() {
  ETX_TRY(carve());
  Method method(state_);
  ETX_TRY(resolve_operators());
  mark_values();
  ETX_TRY(zero_arenas());
  ETX_TRY(build_values());
  mark_checked();
  build_io();
  ETX_TRY(decode());
  const Error error = reset_memory(*state_, false);
  if (error != Error::Ok) return fail(error, "the initial values cannot be read");
  ETX_TRY(check_keys());
  if (length(plan_.delegates()) != 0) {
    if (registry_.init_delegates_ == nullptr) {
      return fail(Error::NotFound, "the method has delegates, and there are no backends");
    }
    ETX_TRY(registry_.init_delegates_(*this));
  }
  return method;
}

Error MethodLoader::check_keys() {
  for (uint32_t i = 0; data_ != nullptr && i < program_.num_named_data(); ++i) {
    const char* key = *program_.named_data_key(i);
    if (data_->get_data(key).ok()) {
      return fail(Error::InvalidExternalData, "the program and the .ptd hold the same key");
    }
  }
  return Error::Ok;
}

template <typename T>
Span<T> MethodLoader::take(size_t count) {
  const Span<T> taken(reinterpret_cast<T*>(block_), count);
  block_ += (count * sizeof(T) + 7) & ~size_t{7};
  return taken;
}

Error MethodLoader::carve() {
  const Layout layout(plan_);
  const size_t size = layout.bytes();
  block_ = static_cast<uint8_t*>(memory_->method_allocator()->allocate(size));
  if (block_ == nullptr) {
    return fail(Error::MemoryAllocationFailed,
                "the method allocator is smaller than MethodMeta::required_bytes");
  }
  std::memset(block_, 0, size);
  state_ = ::new (take<MethodState>(1).data()) MethodState{};
  state_->program = &program_;
  state_->plan = &plan_;
  state_->memory = memory_;
  state_->data = data_;
  state_->find_external = find_external_;
  state_->parallel = parallel_;
  state_->budget = 10'000'000;
  state_->values = take<EValue>(layout.values);
  state_->instructions = take<Instruction>(layout.instructions);
  state_->inputs = take<Input>(layout.inputs);
  state_->outputs = take<Output>(layout.outputs);
  state_->rebinds = take<Rebind>(layout.rebinds);
  state_->kernels = take<const etx_kernel*>(layout.operators);
  state_->delegates = Span<Delegate>(take<Delegate>(layout.delegates).data(), 0);
  tensors_ = take<TensorImpl>(layout.tensors);
  items_ = take<int64_t>(layout.items);
  int_lists_ = take<etx_int_list>(layout.int_lists);
  slots_ = take<etx_value*>(layout.slots);
  specs_ = take<etx_compile_spec>(layout.specs);
  dims_ = take<int32_t>(layout.dims);
  flags_ = take<uint8_t>(layout.values);
  return Error::Ok;
}

Error MethodLoader::resolve_operators() {
  Error error = Error::Ok;
  for (uint32_t i = 0; i < length(plan_.operators()); ++i) {
    const fbs::Operator& op = at(plan_.operators(), i);
    state_->kernels[i] = registry_.find_kernel(text(op.name()), text(op.overload()));
    if (state_->kernels[i] != nullptr) continue;
    Failure failure;
    failure.error = error = Error::OperatorMissing;
    failure.reason = "no kernel";
    failure.name = text(op.name());
    failure.overload = text(op.overload());
    failure.instruction = first_call_of(plan_, i);
    error = report(failures_, failure);
  }
  return error;
}

void MethodLoader::mark_values() {
  for (uint32_t i = 0; i < length(plan_.inputs()); ++i) {
    flags_[static_cast<size_t>(plan_.inputs()->Get(i))] |= kWritten;
  }
  const auto* code = instructions_of(plan_);
  for (uint32_t i = 0; i < length(code); ++i) {
    const fbs::Instruction& instruction = at(code, i);
    if (const fbs::MoveCall* move = instruction.instr_args_as_MoveCall()) {
      flags_[static_cast<size_t>(move->move_to())] |= kMoveTarget | kWritten;
      mark_read(move->move_from());
    } else if (const fbs::JumpFalseCall* jump = instruction.instr_args_as_JumpFalseCall()) {
      mark_read(jump->cond_value_index());
    } else if (const fbs::DelegateCall* delegate = instruction.instr_args_as_DelegateCall()) {
      for (uint32_t k = 0; k < length(delegate->args()); ++k) mark_read(delegate->args()->Get(k));
    } else if (instruction.instr_args_type() == fbs::InstructionArguments::FreeCall) {
      state_->has_free = true;
    } else if (const fbs::KernelCall* call = instruction.instr_args_as_KernelCall()) {
      for (uint32_t k = 0; k < length(call->args()); ++k) mark_read(call->args()->Get(k));
      const char* letter = state_->kernels[static_cast<size_t>(call->op_index())]->signature;
      for (uint32_t k = 0; k < length(call->args()) && *letter != '\0'; ++k) {
        if (*letter == 'v') flags_[static_cast<size_t>(call->args()->Get(k))] |= kWritten;
        do ++letter;
        while (*letter == '!' || *letter == '?');
      }
    }
  }
}

uint8_t& MethodLoader::flags_of(const etx_value& value) {
  return flags_[static_cast<size_t>(static_cast<const EValue*>(&value) - state_->values.data())];
}

void MethodLoader::mark_checked() {
  for (const EValue& value : state_->values) {
    uint8_t& flags = flags_of(value);
    if (state_->has_free || (flags & kMoveTarget) != 0) flags |= kChecked;
    if (value.is_tensor() && (value.payload.as_tensor->flags & kUnbound) != 0) flags |= kChecked;
    if (value.is_tensor() && (value.payload.as_tensor->flags & ETX_TENSOR_CONSTANT) != 0) {
      flags |= kConstant;
    }
  }
  for (const EValue& value : state_->values) {
    if (value.tag() != Tag::ListTensor && value.tag() != Tag::ListOptionalTensor) continue;
    for (uint32_t i = 0; i < value.count; ++i) {
      const etx_value* item = value.payload.as_tensor_list[i];
      const unsigned inherited = item == nullptr ? 0u : flags_of(*item) & (kChecked | kConstant);
      flags_of(value) = static_cast<uint8_t>(flags_of(value) | inherited);
    }
  }
}

void MethodLoader::mark_read(int32_t value) {
  uint8_t& flags = flags_[static_cast<size_t>(value)];
  if ((flags & kRead) != 0) return;
  flags |= kRead;
  const fbs::IntList* list = plan_.values()->Get(static_cast<uint32_t>(value))->val_as_IntList();
  if (list == nullptr) return;
  for (uint32_t i = 0; i < length(list->items()); ++i) {
    flags_[static_cast<size_t>(list->items()->Get(i))] |= kRead;
  }
}

Error MethodLoader::zero_arenas() {
  const HierarchicalAllocator* planned = memory_->planned_memory();
  const auto* sizes = plan_.non_const_buffer_sizes();
  for (uint32_t i = 0; i + 1 < length(sizes); ++i) {
    const auto size = static_cast<size_t>(sizes->Get(i + 1));
    if (size == 0) continue;
    if (planned == nullptr) {
      return fail(Error::MemoryAllocationFailed, "the method needs planned memory", nullptr, i);
    }
    auto address = planned->get_offset_address(i, 0, size);
    if (!address.ok()) {
      return fail(address.error(), "a planned arena is missing or too small", nullptr, i);
    }
    if (reinterpret_cast<uintptr_t>(*address) % MemoryAllocator::kDefaultAlignment != 0) {
      return fail(Error::InvalidArgument, "a planned arena is not aligned to 16", nullptr, i);
    }
    if (!planned->zero_filled()) std::memset(*address, 0, size);
  }
  return Error::Ok;
}

/// The rebinds lie in the order of the tensors.
Rebind* MethodLoader::rebind_of(const TensorImpl* tensor) const {
  size_t begin = 0;
  size_t end = state_->rebinds.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (state_->rebinds[middle].tensor == tensor) return &state_->rebinds[middle];
    if (state_->rebinds[middle].tensor < tensor) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return nullptr;
}

void MethodLoader::build_io() {
  size_t used = 0;
  for (uint32_t i = 0; i < state_->values.size(); ++i) {
    const fbs::Tensor* stored = tensor_of(plan_, i);
    if (stored == nullptr || !(state_->has_free || is_unbound(*stored))) continue;
    TensorImpl* tensor = state_->values[i].payload.as_tensor;
    state_->rebinds[used++] = {tensor, stored, tensor->data, tensor->capacity, false};
  }
  for (uint32_t i = 0; i < state_->inputs.size(); ++i) {
    const auto index = static_cast<uint32_t>(plan_.inputs()->Get(i));
    Input& input = state_->inputs[i];
    input.slot = &state_->values[index];
    input.stored = &value_at(plan_, index);
    input.tensor = input.slot->tag == ETX_TAG_TENSOR ? input.slot->payload.as_tensor : nullptr;
    input.rebind = rebind_of(input.tensor);
    input.is_free = state_->values[index].is_scalar() && (flags_[index] & kRead) != 0;
  }
  for (uint32_t i = 0; i < state_->outputs.size(); ++i) {
    const auto index = static_cast<uint32_t>(plan_.outputs()->Get(i));
    Output& output = state_->outputs[i];
    output.slot = &state_->values[index];
    output.stored = value_at(plan_, index).val_as_Tensor();
    output.tensor = output.slot->tag == ETX_TAG_TENSOR ? output.slot->payload.as_tensor : nullptr;
    output.rebind = rebind_of(output.tensor);
  }
}

}  // namespace etx
