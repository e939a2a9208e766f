// SPDX-License-Identifier: BSD-3-Clause
#include <etx/method.h>

#include <cstring>

#include "method_loader.h"

namespace etx {
namespace {

#if defined(ETX_HAS_DOUBLES)
bool is_close(double a, double b) {
  const double difference = a < b ? b - a : a - b;
  const double size = b < 0 ? -b : b;
  return a == b || difference <= 1e-4 + 1e-5 * size || (a != a && b != b);
}
#else
/// In float, without a library for doubles.
bool is_close(double given, double expected) {
  if (std::memcmp(&given, &expected, sizeof(given)) == 0) return true;
  const float a = detail::to_float(given), b = detail::to_float(expected);
  const float difference = a < b ? b - a : a - b;
  const float size = b < 0 ? -b : b;
  return (size <= 3e38f && difference <= 1e-4f + 1e-5f * size) || (a != a && b != b);
}
#endif

/// Sets a number slot to a number of the same kind; false when `value` is another.
bool set_number(const EValue& value, EValue* slot) {
  if (value.tag() == slot->tag()) {
    slot->payload = value.payload;
    return true;
  }
  if (!slot->is_double() || !value.is_int()) return false;
  slot->set(detail::to_double(value.to_int()));
  return true;
}

/// True when a number or string is the one that was given at export.
bool is_same(const EValue& value, const EValue& expected) {
  if (expected.is_string()) {
    if (!value.is_string() || value.count != expected.count) return false;
    for (uint32_t i = 0; i < value.count; ++i) {
      if (value.payload.as_string[i] != expected.payload.as_string[i]) return false;
    }
    return true;
  }
  EValue number = expected;
  if (!set_number(value, &number)) return false;
  switch (expected.tag()) {
    case Tag::Int: return number.to_int() == expected.to_int();
    case Tag::Bool: return number.to_bool() == expected.to_bool();
    case Tag::Double: return is_close(number.payload.as_double, expected.payload.as_double);
    default: return true;
  }
}

Error refuse(MethodState& state, size_t index, const char* reason,
             Error error = Error::InvalidArgument) {
  state.failure = Failure();
  state.failure.error = error;
  state.failure.reason = reason;
  state.failure.index = static_cast<int32_t>(index);
  return error;
}

/// True when elements lie in memory as the strides of `expected` say; size-1 dimensions lie anyhow.
bool has_layout(const TensorImpl& given, const TensorImpl& expected) {
  for (uint8_t i = 0; i < given.rank; ++i) {
    if (given.sizes[i] != 1 && given.strides[i] != expected.strides[i]) return false;
  }
  return true;
}

/// The first value of that name which is not constant, or the number of values.
size_t find_attribute(const MethodState& state, const char* name) {
  size_t index = 0;
  for (; index < state.values.size(); ++index) {
    const fbs::Tensor* stored = tensor_of(*state.plan, index);
    if (stored == nullptr || is_constant(*stored)) continue;
    const fbs::ExtraTensorInfo* extra = stored->extra_tensor_info();
    if (extra != nullptr && equals(extra->fully_qualified_name(), name)) break;
  }
  return index;
}

}  // namespace

Method::~Method() {
  if (state_ == nullptr) return;
  for (Delegate& delegate : state_->delegates) {
    if (delegate.backend->destroy != nullptr) {
      delegate.backend->destroy(delegate.backend, delegate.handle);
    }
    delegate.blob.Free();
  }
  for (KeptData* kept = state_->kept; kept != nullptr; kept = kept->next) kept->data.Free();
}

MethodMeta Method::method_meta() const { return MethodMeta(state_->plan); }

size_t Method::inputs_size() const { return state_->inputs.size(); }

size_t Method::outputs_size() const { return state_->outputs.size(); }

const EValue& Method::get_input(size_t index) const {
  return *static_cast<const EValue*>(state_->inputs[index].slot);
}

const EValue& Method::get_output(size_t index) const {
  return *static_cast<const EValue*>(state_->outputs[index].slot);
}

bool Method::is_input_planned(size_t index) const {
  const TensorImpl* tensor = state_->inputs[index].tensor;
  return tensor != nullptr && (tensor->flags & kUnbound) == 0;
}

bool Method::is_input_free(size_t index) const { return state_->inputs[index].is_free; }

Error Method::resize_input(size_t index, ScalarType scalar_type, Span<const int32_t> sizes) {
  MethodState& state = *state_;
  if (index >= state.inputs.size()) {
    return refuse(state, index, "the method has fewer inputs");
  }
  const Port& input = state.inputs[index];
  TensorImpl* tensor = input.tensor;
  if (tensor == nullptr) {
    return refuse(state, index, "the input is not a tensor");
  }
  if (static_cast<int8_t>(scalar_type) != tensor->dtype) {
    return refuse(state, index, "the input has another dtype");
  }
  if (sizes.size() != tensor->rank) {
    return refuse(state, index, "the input has another rank", Error::NotSupported);
  }
  input.slot->payload.as_tensor = tensor;
  const fbs::Tensor& stored = input.stored_tensor();
  const bool dynamic = is_dynamic(stored);
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const int32_t bound = stored.sizes()->Get(i);
    const bool is_in_bounds = sizes[i] >= 0 && sizes[i] <= bound;
    if (dynamic ? !is_in_bounds : sizes[i] != bound) {
      return refuse(state, index, "the input has another shape", Error::NotSupported);
    }
  }
  if (!dynamic) return Error::Ok;
  tensor->numel = 1;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    tensor->sizes[i] = sizes[i];
    tensor->numel *= sizes[i];
  }
  update_strides(*tensor);
  if (tensor->numel > tensor->capacity) tensor->data = nullptr;
  return Error::Ok;
}

Error Method::set_input(const EValue& value, size_t index) {
  MethodState& state = *state_;
  if (index >= state.inputs.size()) {
    return refuse(state, index, "the method has fewer inputs");
  }
  const Port& input = state.inputs[index];
  if (input.tensor == nullptr) {
    if (input.is_free) {
      if (set_number(value, static_cast<EValue*>(input.slot))) return Error::Ok;
      return refuse(state, index, "the input is a number of another kind");
    }
    if (is_same(value, initial_value(*input.stored))) return Error::Ok;
    return refuse(state, index, "the input was specialised at export and must have the same value");
  }
  if (!value.is_tensor()) {
    return refuse(state, index, "the input must be a tensor");
  }
  const TensorImpl& given = *value.payload.as_tensor;
  ETX_TRY(resize_input(index, value.to_tensor().scalar_type(), {given.sizes, given.rank}));
  TensorImpl& tensor = *input.tensor;
  if (given.numel > 1 && !has_layout(given, tensor)) {
    return refuse(state, index, "the input has another memory layout");
  }
  if (given.data == nullptr && given.numel != 0) {
    return refuse(state, index, "the input has no data");
  }
  if ((tensor.flags & kUnbound) != 0) {
    tensor.data = given.data;
    tensor.capacity = given.numel;
    const unsigned constant = given.flags & ETX_TENSOR_CONSTANT;
    tensor.flags = static_cast<uint8_t>(kUnbound | constant);
    input.rebind->data = given.data;
    input.rebind->capacity = given.numel;
    input.rebind->is_constant = constant != 0;
  } else if (given.numel != 0 && tensor.data != given.data) {
    std::memmove(tensor.data, given.data, Tensor(&tensor).nbytes());
  }
  return Error::Ok;
}

Error Method::set_output_data_ptr(void* data, size_t size, size_t index) {
  MethodState& state = *state_;
  if (index >= state.outputs.size() || state.outputs[index].tensor == nullptr) {
    return refuse(state, index, "there is no such tensor output");
  }
  const Port& output = state.outputs[index];
  if (!is_unbound(output.stored_tensor())) {
    return refuse(state, index, "the output lies in planned memory", Error::InvalidState);
  }
  if (size < nbytes_of(output.stored_tensor())) {
    return refuse(state, index, "the output needs more bytes");
  }
  Rebind& rebind = *output.rebind;
  rebind.data = data;
  rebind.capacity = numel_of(output.stored_tensor());
  rebind.is_constant = false;
  restore(rebind);
  return Error::Ok;
}

Error Method::reset_state(bool zero) { return MethodLoader::reset_memory(state_, zero); }

Result<Tensor> Method::get_attribute(const char* name) const {
  const size_t index = find_attribute(*state_, name);
  if (index == state_->values.size()) return Error::NotFound;
  return state_->values[index].to_tensor();
}

Error Method::set_attribute_data_ptr(void* data, size_t size, const char* name) {
  const size_t index = find_attribute(*state_, name);
  if (index == state_->values.size()) return Error::NotFound;
  const fbs::Tensor* stored = tensor_of(*state_->plan, index);
  for (Rebind& rebind : state_->rebinds) {
    if (rebind.stored != stored || !is_unbound(*stored)) continue;
    if (size < nbytes_of(*stored)) return Error::InvalidArgument;
    rebind.data = data;
    rebind.capacity = numel_of(*stored);
    restore(rebind);
    return Error::Ok;
  }
  return Error::InvalidState;
}

const Failure& Method::last_failure() const { return state_->failure; }

Span<etx_value* const> Method::instruction_args(size_t index) const {
  if (index >= state_->instructions.size()) return {};
  const Instruction& instruction = state_->instructions[index];
  return {arguments(*state_, instruction), instruction.num_args};
}

etx_kernel_fn Method::instruction_kernel(size_t index) const {
  if (index >= state_->instructions.size()) return nullptr;
  const Instruction& instruction = state_->instructions[index];
  return instruction.kind <= Instruction::Kind::View ? instruction.run : nullptr;
}

void Method::set_instruction_budget(uint64_t instructions) { state_->budget = instructions; }

void Method::seed(uint64_t seed) { state_->random = {seed, 0}; }

void Method::cancel() { state_->is_cancelled.store(true, std::memory_order_relaxed); }

void Method::clear_cancel() { state_->is_cancelled.store(false, std::memory_order_relaxed); }

void Method::set_parallel(Parallel* parallel) { state_->parallel = parallel; }

}  // namespace etx
