// SPDX-License-Identifier: BSD-3-Clause
#include "method_loader.h"

#include <cstring>

namespace etx {
namespace {

int32_t first_call_of(const fbs::ExecutionPlan& plan, uint32_t op) {
  const auto* code = instructions_of(plan);
  for (uint32_t i = 0; i < length(code); ++i) {
    const Call call = call_at(code, i);
    if (call.kind == fbs::InstructionArguments::KernelCall && call.first == op) {
      return static_cast<int32_t>(i);
    }
  }
  return -1;
}

}  // namespace

Result<Method> Program::load_untraced(const detail::LoadRequest& request) const {
  const void* plan = find_plan(request.name);
  if (plan == nullptr) {
    Failure failure;
    failure.error = Error::InvalidArgument;
    failure.reason = "the program has no such method";
    failure.name = request.name;
    return report(request.failures, failure);
  }
  return MethodLoader(*this, *as_plan(plan), request).load();
}

Error MethodLoader::fail(Error error, const char* reason) {
  failure_.error = error;
  failure_.reason = reason;
  return report(request_.failures, failure_);
}

Error MethodLoader::fail_arena(size_t index, Error error, const char* reason) {
  failure_.index = static_cast<int32_t>(index);
  return fail(error, reason);
}

Error MethodLoader::fail_operator(size_t index, Error error, const char* reason) {
  const fbs::Operator& op = at(plan_.operators(), index);
  failure_.name = text(op.name());
  failure_.overload = text(op.overload());
  return fail(error, reason);
}

Result<Method> MethodLoader::load() {
  ETX_TRY(carve());
  Method method(state_);
  ETX_TRY(resolve_operators());
  ETX_TRY(prepare_arenas(request_.memory->planned_memory() != nullptr &&
                         !request_.memory->planned_memory()->zero_filled()));
  ETX_TRY(build_values());
  decode();
  build_ports(plan_.inputs(), state_->inputs);
  build_ports(plan_.outputs(), state_->outputs);
  mark_values();
  mark_checked();
  ETX_TRY(check_kernels());
  ETX_TRY(write_initial_values());
  ETX_TRY(check_keys());
  if (length(plan_.delegates()) != 0) {
    if (request_.registry->init_delegates_ == nullptr) {
      return fail(Error::NotFound, "the method has delegates, and there are no backends");
    }
    ETX_TRY(request_.registry->init_delegates_(*this));
  }
  return method;
}

Error MethodLoader::check_keys() {
  const auto* entries = request_.data == nullptr ? nullptr : root().named_data();
  for (size_t i = 0; i < length(entries); ++i) {
    if (request_.data->get_data(text(at(entries, i).key())).ok()) {
      return fail(Error::InvalidExternalData, "the program and the .ptd hold the same key");
    }
  }
  return Error::Ok;
}

Error MethodLoader::carve() {
  const Layout layout(plan_);
  const size_t size = layout.total_bytes();
  auto* block = static_cast<uint8_t*>(request_.memory->method_allocator()->allocate(size));
  if (block == nullptr) {
    return fail(Error::MemoryAllocationFailed,
                "the method allocator is smaller than MethodMeta::required_bytes");
  }
  std::memset(block, 0, size);
  void* parts[Layout::kNumParts];
  for (uint8_t i = 0; i < Layout::kNumParts; ++i) {
    parts[i] = block;
    block += layout.bytes(static_cast<Layout::Part>(i));
  }
  const auto take = [&](Layout::Part part, auto* span) {
    using T = std::remove_reference_t<decltype(*span->data())>;
    *span = {static_cast<T*>(parts[part]), layout.counts[part]};
  };
  state_ = ::new (parts[Layout::kState]) MethodState{};
  state_->program = &program_;
  state_->plan = &plan_;
  state_->memory = request_.memory;
  state_->data = request_.data;
  state_->find_external = request_.find_external;
  state_->parallel = request_.parallel;
  state_->budget = 10'000'000;
  state_->has_free = layout.has_free;
  take(Layout::kValues, &state_->values);
  take(Layout::kInstructions, &state_->instructions);
  take(Layout::kInputs, &state_->inputs);
  take(Layout::kOutputs, &state_->outputs);
  take(Layout::kRebinds, &state_->rebinds);
  take(Layout::kKernels, &state_->kernels);
  state_->delegates = {static_cast<Delegate*>(parts[Layout::kDelegates]), 0};
  tensors_ = static_cast<TensorImpl*>(parts[Layout::kTensors]);
  items_ = static_cast<int64_t*>(parts[Layout::kItems]);
  int_lists_ = static_cast<etx_int_list*>(parts[Layout::kIntLists]);
  slots_ = static_cast<etx_value**>(parts[Layout::kSlots]);
  specs_ = static_cast<etx_compile_spec*>(parts[Layout::kSpecs]);
  dims_ = static_cast<int32_t*>(parts[Layout::kDims]);
  flags_ = static_cast<uint8_t*>(parts[Layout::kFlags]);
  return Error::Ok;
}

Error MethodLoader::resolve_operators() {
  Error error = Error::Ok;
  for (uint32_t i = 0; i < state_->kernels.size(); ++i) {
    const fbs::Operator& op = at(plan_.operators(), i);
    state_->kernels[i] = request_.registry->find_kernel(text(op.name()), text(op.overload()));
    if (state_->kernels[i] != nullptr) continue;
    failure_.instruction = first_call_of(plan_, i);
    error = fail_operator(i, Error::OperatorMissing, "no kernel");
  }
  return error;
}

uint8_t& MethodLoader::flags_of(const etx_value& value) {
  return flags_[static_cast<const EValue*>(&value) - state_->values.data()];
}

void MethodLoader::mark_values() {
  for (const Port& input : state_->inputs) {
    if (input.tensor == nullptr) flags_of(*input.slot) |= kWritten;
  }
  for (const Instruction& instruction : state_->instructions) {
    etx_value** const args = arguments(*state_, instruction);
    if (instruction.kind == Instruction::Kind::Move) {
      mark_read(*args[0]);
      flags_of(*args[1]) |= kMoveTarget | kWritten;
      continue;
    }
    if (instruction.kind == Instruction::Kind::Free) continue;
    const char* signature = instruction.kind == Instruction::Kind::Kernel
                                ? state_->kernels[instruction.target]->signature
                                : "";
    for (uint32_t i = 0; i < instruction.num_args; ++i) {
      mark_read(*args[i]);
      if (*signature == '\0') continue;
      Parameter parameter;
      signature = read_parameter(signature, &parameter);
      if (parameter.letter == 'v') flags_of(*args[i]) |= kWritten;
    }
  }
  for (Port& input : state_->inputs) {
    input.is_free =
        static_cast<const EValue*>(input.slot)->is_scalar() && (flags_of(*input.slot) & kRead) != 0;
  }
}

void MethodLoader::mark_read(const etx_value& value) {
  uint8_t& flags = flags_of(value);
  if ((flags & kRead) != 0) return;
  flags |= kRead;
  if (value.tag != ETX_TAG_LIST_INT) return;
  for (uint32_t i = 0; i < value.count; ++i)
    flags_of(*value.payload.as_int_list->boxed[i]) |= kRead;
}

/// Also tells integer lists that never change, which need not be read again.
void MethodLoader::mark_checked() {
  for (const EValue& value : state_->values) {
    uint8_t& flags = flags_of(value);
    if (state_->has_free || (flags & kMoveTarget) != 0) flags |= kChecked;
    if (!value.is_tensor()) continue;
    if ((value.payload.as_tensor->flags & kUnbound) != 0) flags |= kChecked;
    if ((value.payload.as_tensor->flags & ETX_TENSOR_CONSTANT) != 0) flags |= kConstant;
  }
  for (const EValue& value : state_->values) {
    const bool is_int_list = value.tag() == Tag::ListInt;
    if (!is_int_list && value.tag() != Tag::ListTensor && value.tag() != Tag::ListOptionalTensor) {
      continue;
    }
    const etx_value* const* items =
        is_int_list ? value.payload.as_int_list->boxed : value.payload.as_tensor_list;
    unsigned inherited = 0;
    for (uint32_t i = 0; i < value.count; ++i) {
      if (items[i] != nullptr) inherited |= flags_of(*items[i]);
    }
    flags_of(value) |= static_cast<uint8_t>(inherited & (kChecked | kConstant | kWritten));
    if (is_int_list && (inherited & kWritten) == 0) value.payload.as_int_list->boxed = nullptr;
  }
}

Error MethodLoader::prepare_arenas(bool zero) {
  const HierarchicalAllocator* planned = request_.memory->planned_memory();
  const auto* sizes = plan_.non_const_buffer_sizes();
  for (uint32_t i = 0; i + 1 < length(sizes); ++i) {
    const auto size = static_cast<size_t>(sizes->Get(i + 1));
    if (size == 0) continue;
    if (planned == nullptr) {
      return fail_arena(i, Error::MemoryAllocationFailed, "the method needs planned memory");
    }
    auto address = planned->get_offset_address(i, 0, size);
    if (!address.ok()) {
      return fail_arena(i, address.error(), "a planned arena is missing or too small");
    }
    if (reinterpret_cast<uintptr_t>(*address) % MemoryAllocator::kDefaultAlignment != 0) {
      return fail_arena(i, Error::InvalidArgument, "a planned arena is not aligned to 16");
    }
    if (zero) std::memset(*address, 0, size);
  }
  return Error::Ok;
}

void MethodLoader::build_ports(const FbVector<int32_t>* values, Span<Port> ports) {
  for (uint32_t i = 0; i < ports.size(); ++i) {
    const auto index = static_cast<size_t>(values->Get(i));
    Port& port = ports[i];
    port.slot = &state_->values[index];
    port.stored = &value_at(plan_, index);
    if (port.slot->tag != ETX_TAG_TENSOR) continue;
    port.tensor = port.slot->payload.as_tensor;
    Rebind* found = state_->rebinds.data();
    for (size_t count = state_->rebinds.size(), half; count > 1; count -= half) {
      half = count / 2;
      if (found[half].tensor <= port.tensor) found += half;
    }
    if (state_->rebinds.size() != 0 && found->tensor == port.tensor) port.rebind = found;
  }
}

}  // namespace etx
