// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>
#include <etx/hosted/module.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "describe.h"
#include "mutable_buffers.h"
#include "strided_copy.h"

namespace etx {

/// The memory that a method takes over from others, with the values it has.
struct LoadedMethod::Shared {
  struct Value {
    size_t arena;
    BufferPlace place;
    std::vector<uint8_t> bytes;
  };
  std::vector<PlannedMemory::Block> blocks;
  std::vector<Value> values;
  LoadedMethod* partner = nullptr;

  void restore(const PlannedMemory& memory) const {
    for (const Value& value : values) {
      std::memcpy(memory.bytes(value.arena).data() + value.place.offset, value.bytes.data(),
                  value.bytes.size());
    }
  }
};

LoadedMethod::Shared LoadedMethod::find_shared(const MethodMeta& meta,
                                               const std::vector<LoadedMethod*>& others) const {
  Shared shared;
  const std::vector<BufferPlaces> own = find_buffer_arenas(meta.plan_);
  shared.blocks.resize(own.size());
  for (LoadedMethod* other : others) {
    const std::vector<BufferPlaces> theirs =
        find_buffer_arenas(other->method_->method_meta().plan_);
    for (size_t i = 0; i < own.size() && i < theirs.size(); ++i) {
      const Span<uint8_t> bytes = other->planned_->bytes(i);
      const bool same_size = bytes.size() == *meta.memory_planned_buffer_size(i);
      if (!same_size || !is_shared(own[i], theirs[i])) continue;
      if (shared.blocks[i] != nullptr && shared.blocks[i] != other->planned_->block(i)) continue;
      shared.blocks[i] = other->planned_->block(i);
      shared.partner = other;
      for (const auto& [name, place] : theirs[i]) {
        const uint8_t* begin = bytes.data() + place.offset;
        shared.values.push_back({i, place, {begin, begin + place.size}});
      }
    }
  }
  return shared;
}

LoadedMethod::~LoadedMethod() { unload(); }

void LoadedMethod::unload() {
  if (group_ != nullptr) {
    group_->erase(std::remove(group_->begin(), group_->end(), this), group_->end());
    group_.reset();
  }
  method_.reset();
  open_state_.clear();
}

Error LoadedMethod::reset_state() {
  ETX_TRY(method_->reset_state());
  for (size_t i = 0; group_ != nullptr && i < group_->size(); ++i) {
    LoadedMethod* member = (*group_)[i];
    if (member != this) ETX_TRY(member->method_->reset_state(false));
  }
  return Error::Ok;
}

std::unique_ptr<LoadedMethod> LoadedMethod::load(std::shared_ptr<LoadedProgram> program,
                                                 const std::string& name, ErrorText* error,
                                                 const std::vector<LoadedMethod*>& sharing,
                                                 const LoadBackendOptionsMap* backend_options,
                                                 EventTracer* tracer) {
  const uint64_t start = etx_pal_current_ticks();
  auto loaded = load_unlogged(std::move(program), name, error, sharing, backend_options, tracer);
  if (loaded == nullptr) {
    log(ETX_LOG_INFO, "method '" + name + "': " + error->message);
  } else if (is_logged(ETX_LOG_INFO)) {
    const size_t instructions = loaded->method().method_meta().num_instructions();
    log(ETX_LOG_INFO, "method '" + name + "': loaded " + counted(instructions, "instruction") +
                          ", planned " + std::to_string(loaded->planned_bytes()) +
                          " bytes, method " + std::to_string(loaded->method_bytes()) +
                          " bytes, in " + std::to_string((etx_pal_current_ticks() - start) / 1000) +
                          " us");
  }
  return loaded;
}

std::unique_ptr<LoadedMethod> LoadedMethod::load_unlogged(
    std::shared_ptr<LoadedProgram> program, const std::string& name, ErrorText* error,
    const std::vector<LoadedMethod*>& sharing, const LoadBackendOptionsMap* backend_options,
    EventTracer* tracer) {
  auto meta = program->program().method_meta(name.c_str());
  if (!meta.ok()) {
    error->error = meta.error();
    error->message = "the program has no method '" + name + "'; it has";
    for (size_t i = 0; i < program->program().num_methods(); ++i) {
      error->message +=
          (i == 0 ? " '" : ", '") + std::string(*program->program().get_method_name(i)) + "'";
    }
    return nullptr;
  }
  std::unique_ptr<LoadedMethod> loaded(new LoadedMethod(meta->required_bytes()));
  const Shared shared = loaded->find_shared(*meta, sharing);
  loaded->planned_ = PlannedMemory::for_method(*meta, shared.blocks);
  if (loaded->planned_ == nullptr) {
    error->error = Error::MemoryAllocationFailed;
    error->message = "not enough memory for the planned arenas of '" + name + "'";
    return nullptr;
  }
  loaded->memory_ = std::make_unique<MemoryManager>(
      &loaded->method_arena_, loaded->planned_->allocator(), &loaded->temp_arena_);
  std::vector<etx_plugin> rest;
  const auto plugins = Plugins::shared().list(program->kernels(), &rest);
  if (backend_options != nullptr && !check_backends(*backend_options, plugins, error)) {
    return nullptr;
  }
  MessageSink failures;
  auto method = program->program().load_method(
      name.c_str(), loaded->memory_.get(), Registry({plugins.data(), plugins.size()}), tracer,
      program->data(), &failures, &ThreadPool::shared(), backend_options);
  if (method.ok()) method->set_tracer(nullptr);
  shared.restore(*loaded->planned_);
  if (!method.ok()) {
    *error = failures.text(method.error());
    return nullptr;
  }
  if (shared.partner != nullptr) {
    auto& group = shared.partner->group_;
    if (group == nullptr) {
      group = std::make_shared<std::vector<LoadedMethod*>>();
      group->push_back(shared.partner);
    }
    group->push_back(loaded.get());
    loaded->group_ = group;
  }
  loaded->method_ = std::make_unique<Method>(std::move(method.get()));
  loaded->program_ = std::move(program);
  const size_t num_inputs = loaded->method_->inputs_size();
  loaded->input_bytes_.resize(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    loaded->is_tensor_input_.push_back(loaded->method_->get_input(i).is_tensor());
  }
  loaded->find_state();
  return loaded->bind_outputs(error) ? std::move(loaded) : nullptr;
}

void LoadedMethod::find_state() {
  const MethodMeta meta = method_->method_meta();
  for (size_t i = 0; i < meta.num_attributes(); ++i) {
    const TensorInfo info = *meta.attribute_tensor_meta(i);
    const std::string name(info.name().data(), info.name().size());
    const auto tensor = method_->get_attribute(name.c_str());
    const bool is_known = std::any_of(state_.begin(), state_.end(),
                                      [&](const auto& known) { return known.first == name; });
    if (!tensor.ok() || is_known) continue;
    state_.emplace_back(name, *tensor);
    bool is_other = info.is_memory_planned();
    for (size_t k = 0; !is_other && k < method_->inputs_size(); ++k) {
      const EValue& input = method_->get_input(k);
      is_other = input.is_tensor() && input.to_tensor().impl() == tensor->impl();
    }
    if (!is_other) open_state_.push_back({name, tensor->nbytes(), false, nullptr, nullptr});
  }
  num_unbound_ = open_state_.size();
}

bool LoadedMethod::OpenState::contains(const void* address) const {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto place = reinterpret_cast<uintptr_t>(address);
  return is_bound && place >= begin && (place - begin < size || place == begin);
}

bool LoadedMethod::has_state(const std::string& name) const {
  for (const OpenState& open : open_state_) {
    if (open.name == name) return open.is_bound;
  }
  for (const auto& [known, tensor] : state_) {
    if (known == name) return planned_->contains(tensor.const_data_ptr(), tensor.nbytes());
  }
  return false;
}

Result<Tensor> LoadedMethod::state(const std::string& name) {
  for (const OpenState& open : open_state_) {
    if (open.name != name || !open.is_bound) continue;
    // A view may have given the slot another tensor's memory, which may be gone.
    ETX_TRY(method_->set_attribute_data_ptr(open.data, open.size, name.c_str()));
  }
  for (const auto& [known, tensor] : state_) {
    if (known == name) return Tensor(tensor);
  }
  return Error::NotFound;
}

Error LoadedMethod::bind_state(const std::string& name, void* data, std::shared_ptr<void> owner) {
  for (OpenState& open : open_state_) {
    if (open.name != name) continue;
    if (data == nullptr) {
      auto* zeros = new (std::nothrow) uint8_t[open.size + 1]();
      if (zeros == nullptr) return Error::MemoryAllocationFailed;
      owner = std::shared_ptr<uint8_t>(zeros, std::default_delete<uint8_t[]>());
      data = zeros;
    }
    ETX_TRY(method_->set_attribute_data_ptr(data, open.size, name.c_str()));
    open.owner.swap(owner);
    open.data = data;
    if (!open.is_bound) --num_unbound_;
    open.is_bound = true;
    return Error::Ok;
  }
  return method_->get_attribute(name.c_str()).ok() ? Error::InvalidState : Error::NotFound;
}

std::shared_ptr<void> LoadedMethod::state_owner(const void* data) const {
  for (const OpenState& open : open_state_) {
    if (open.contains(data)) return open.owner;
  }
  return nullptr;
}

bool LoadedMethod::bind_outputs(ErrorText* error) {
  const MethodMeta meta = method_->method_meta();
  output_bytes_.resize(meta.num_outputs());
  for (size_t i = 0; i < meta.num_outputs(); ++i) {
    auto info = meta.output_tensor_meta(i);
    if (!info.ok()) continue;
    const bool has_memory = method_->get_output(i).to_tensor().const_data_ptr() != nullptr;
    if (has_memory || info->nbytes() == 0) continue;
    output_bytes_[i].reset(new (std::nothrow) uint8_t[info->nbytes()]);
    const bool is_there = output_bytes_[i] != nullptr;
    const Error status =
        is_there ? method_->set_output_data_ptr(output_bytes_[i].get(), info->nbytes(), i)
                 : Error::MemoryAllocationFailed;
    if (status == Error::Ok) continue;
    error->error = status;
    error->message = "output " + std::to_string(i) + " cannot be bound";
    return false;
  }
  return true;
}

std::string LoadedMethod::input_label(size_t index) const {
  std::string label = "input " + std::to_string(index);
  if (index < input_names_.size() && !input_names_[index].empty()) {
    label += " ('" + input_names_[index] + "')";
  }
  return label;
}

std::string LoadedMethod::expected_input(size_t index) const {
  auto info = method_->method_meta().input_tensor_meta(index);
  if (!info.ok()) return describe_value(method_->get_input(index));
  return describe_tensor(info->scalar_type(), info->sizes(),
                         info->shape_dynamism() != TensorShapeDynamism::Static);
}

bool LoadedMethod::owns(const void* data, size_t size) const {
  if (planned_->contains(data, size)) return true;
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < output_bytes_.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(output_bytes_[i].get());
    if (begin == 0 || address < begin) continue;
    const size_t room = method_->method_meta().output_tensor_meta(i)->nbytes();
    if (address - begin <= room && size <= room - (address - begin)) return true;
  }
  return false;
}

bool LoadedMethod::is_callers(const void* data) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < method_->inputs_size(); ++i) {
    if (!is_tensor_input_[i] || method_->is_input_planned(i)) continue;
    const Tensor tensor = method_->get_input(i).to_tensor();
    const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    if (address == begin || (address > begin && address - begin < tensor.nbytes())) return true;
  }
  return std::any_of(open_state_.begin(), open_state_.end(), [data](const OpenState& open) {
    return open.owner == nullptr && open.contains(data);
  });
}

bool LoadedMethod::has_input(size_t index, ErrorText* error) const {
  const size_t count = method_->inputs_size();
  if (index < count) return true;
  error->error = Error::InvalidArgument;
  error->message =
      "there is no input " + std::to_string(index) + ": the method has " + std::to_string(count);
  return false;
}

bool LoadedMethod::set_tensor(size_t index, const void* data, ScalarType scalar_type,
                              Span<const int32_t> shape, Span<const int64_t> strides,
                              bool is_constant, ErrorText* error) {
  if (!has_input(index, error)) return false;
  Error status = method_->resize_input(index, scalar_type, shape);
  if (status != Error::Ok) {
    error->error = status;
    error->index = static_cast<int32_t>(index);
    error->message = input_label(index) + ": expected " + expected_input(index) + ", got " +
                     describe_tensor(scalar_type, shape);
    return false;
  }
  Tensor tensor = method_->get_input(index).to_tensor();
  const size_t alignment = tensor.element_size() < 8 ? tensor.element_size() : 8;
  bool same_layout = reinterpret_cast<uintptr_t>(data) % alignment == 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    same_layout &= shape[i] == 1 || strides[i] == tensor.stride(static_cast<ssize_t>(i));
  }
  TensorImpl given = *tensor.impl();
  given.data = const_cast<void*>(data);
  given.flags = is_constant ? ETX_TENSOR_CONSTANT : 0;
  if (!same_layout && tensor.numel() > 0) {
    void* target = tensor.mutable_data_ptr();
    if (!method_->is_input_planned(index)) {
      input_bytes_[index].resize(tensor.nbytes());
      target = given.data = input_bytes_[index].data();
      given.flags = ETX_TENSOR_CONSTANT;
    }
    copy_strided(target, given.strides, data, strides.data(), shape.data(), shape.size(),
                 tensor.element_size());
    if (method_->is_input_planned(index)) return true;
  }
  status = method_->set_input(EValue(&given), index);
  if (status == Error::Ok) return true;
  error->error = status;
  error->index = static_cast<int32_t>(index);
  error->message = input_label(index) + ": " + method_->last_failure().reason;
  return false;
}

bool LoadedMethod::set_value(size_t index, const EValue& value, ErrorText* error) {
  if (!has_input(index, error)) return false;
  const Error status = method_->set_input(value, index);
  if (status == Error::Ok) return true;
  error->error = status;
  error->index = static_cast<int32_t>(index);
  error->message =
      input_label(index) + ": expected " + expected_input(index) + ", got " + describe_value(value);
  if (method_->is_input_free(index)) {
    error->message += "; the kind of number must be the same";
  } else if (!method_->get_input(index).is_tensor()) {
    error->message += "; it was specialised to this value at export";
  }
  return false;
}

bool LoadedMethod::execute(ErrorText* error) {
  if (num_unbound_ != 0) {
    error->error = Error::InvalidState;
    for (const OpenState& state : open_state_) {
      if (!state.is_bound) error->name = state.name;
    }
    error->message = "buffer '" + error->name +
                     "' has no memory: the file leaves it to the caller, who binds or sets it";
    return false;
  }
  if (method_->execute() == Error::Ok) return true;
  *error = describe_execution(*method_, method_->last_failure());
  if (error->error == Error::InvalidState) explain(error);
  log(ETX_LOG_INFO, method_->method_meta().name() + (": " + error->message));
  return false;
}

/// Names the input that the instruction writes to and must not.
void LoadedMethod::explain(ErrorText* error) const {
  if (error->instruction < 0) return;
  for (const etx_value* value :
       method_->instruction_args(static_cast<size_t>(error->instruction))) {
    if (value == nullptr || value->tag != ETX_TAG_TENSOR) continue;
    const etx_tensor& tensor = *value->payload.as_tensor;
    for (size_t i = 0; i < method_->inputs_size(); ++i) {
      if (!is_tensor_input_[i] || method_->is_input_planned(i)) continue;
      const Tensor input = method_->get_input(i).to_tensor();
      const bool is_same = tensor.data != nullptr && input.const_data_ptr() == tensor.data;
      if (!is_same || (tensor.flags & ETX_TENSOR_CONSTANT) == 0) continue;
      error->index = static_cast<int32_t>(i);
      error->message += "; the program writes to " + input_label(i) +
                        ": give it writable memory in the layout of " + expected_input(i);
      return;
    }
  }
}

}  // namespace etx
