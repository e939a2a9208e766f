// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>
#include <etx/hosted/module.h>

#include "describe.h"

namespace etx {

/// Makes a method the one that `cancel` ends, for as long as it executes.
struct Module::Execution {
  Execution(Module& owner, Method& method) : module(owner) {
    module.running_ = &method;
    if (module.is_cancelled_) method.cancel();
  }
  ~Execution() {
    module.running_ = nullptr;
    module.is_cancelled_ = false;
  }
  Module& module;
};

Error Module::fail(Error error, std::string message) {
  ErrorText text;
  text.error = error;
  text.message = std::move(message);
  return fail(std::move(text));
}

Error Module::fail(ErrorText text) {
  error_ = std::move(text);
  log(ETX_LOG_INFO, error_.message);
  return error_.error;
}

Error Module::load(Program::Verification verification) {
  if (program_ != nullptr) return Error::Ok;
  LoadedProgram::Options options;
  options.verification = verification;
  options.use_mmap = load_mode_ == LoadMode::Mmap;
  options.data_paths = data_paths_;
  error_ = ErrorText();
  program_ = LoadedProgram::from_file(path_, options, &error_);
  return program_ == nullptr ? error_.error : Error::Ok;
}

Error Module::load(const LoadBackendOptionsMap& backend_options,
                   Program::Verification verification) {
  backend_options_ = StoredBackendOptions(backend_options);
  return load(verification);
}

Result<size_t> Module::num_methods() {
  ETX_TRY(load());
  return program_->program().num_methods();
}

Result<std::unordered_set<std::string>> Module::method_names() {
  ETX_TRY(load());
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < program_->program().num_methods(); ++i) {
    names.emplace(*program_->program().get_method_name(i));
  }
  return names;
}

Result<MethodMeta> Module::method_meta(const std::string& name) {
  ETX_TRY(load());
  auto meta = program_->program().method_meta(name.c_str());
  if (!meta.ok()) return fail(meta.error(), "the program has no method '" + name + "'");
  return meta;
}

const Module::Entry* Module::find(const std::string& name) const {
  for (const auto& entry : methods_) {
    if (entry->name == name) return entry.get();
  }
  return nullptr;
}

Error Module::load_method(const std::string& name) {
  ETX_TRY(load());
  if (find(name) != nullptr) return Error::Ok;
  error_ = ErrorText();
  const LoadBackendOptionsMap options = backend_options_.map();
  auto loaded = LoadedMethod::load(program_, name, &error_, {}, &options);
  if (loaded == nullptr) return error_.error;
  const size_t count = loaded->method().inputs_size();
  methods_.push_back(
      std::make_unique<Entry>(Entry{name, std::move(loaded), std::vector<bool>(count), {}}));
  methods_.back()->copies.resize(count);
  return Error::Ok;
}

bool Module::unload_method(const std::string& name) {
  for (auto entry = methods_.begin(); entry != methods_.end(); ++entry) {
    if ((*entry)->name != name) continue;
    methods_.erase(entry);
    return true;
  }
  return false;
}

Result<Module::Entry*> Module::entry(const std::string& name) {
  ETX_TRY(load_method(name));
  return const_cast<Entry*>(find(name));
}

Result<Method*> Module::method(const std::string& name) {
  ETX_ASSIGN(Entry * found, entry(name));
  return &found->loaded->method();
}

Error Module::set(Entry& entry, const EValue& value, size_t index) {
  LoadedMethod& loaded = *entry.loaded;
  if (index >= entry.is_set.size()) {
    return fail(Error::InvalidArgument, entry.name + " has " +
                                            counted(entry.is_set.size(), "input") +
                                            ", there is none at " + std::to_string(index));
  }
  error_ = ErrorText();
  bool ok;
  if (value.is_tensor() && loaded.is_tensor_input(index)) {
    const Tensor tensor = value.to_tensor();
    const std::vector<int64_t> strides(tensor.strides().begin(), tensor.strides().end());
    const bool is_constant = (tensor.impl()->flags & ETX_TENSOR_CONSTANT) != 0;
    ok = loaded.set_tensor(index, tensor.const_data_ptr(), tensor.scalar_type(), tensor.sizes(),
                           {strides.data(), strides.size()}, is_constant, &error_);
  } else {
    ok = loaded.set_value(index, value, &error_);
  }
  if (!ok) return fail(error_);
  entry.is_set[index] = true;
  return Error::Ok;
}

Error Module::set_input(const std::string& name, const EValue& value, size_t index) {
  ETX_ASSIGN(Entry * found, entry(name));
  return set(*found, value, index);
}

Error Module::set_inputs(const std::string& name, const std::vector<EValue>& values) {
  ETX_ASSIGN(Entry * found, entry(name));
  if (values.size() != found->is_set.size()) {
    return fail(Error::InvalidArgument, name + " takes " + counted(found->is_set.size(), "input") +
                                            ", got " + std::to_string(values.size()));
  }
  // Setting one may write over another that lies in the method's memory, as outputs do.
  std::vector<EValue> given = values;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_tensor() || !found->loaded->is_tensor_input(i)) continue;
    const Tensor tensor = given[i].to_tensor();
    if (!found->loaded->owns(tensor.const_data_ptr(), tensor.nbytes())) continue;
    found->copies[i] = clone_tensor_ptr(tensor);
    if (found->copies[i] == nullptr)
      return fail(Error::MemoryAllocationFailed, "not enough memory");
    given[i] = EValue(found->copies[i]);
  }
  for (size_t i = 0; i < given.size(); ++i) ETX_TRY(set(*found, given[i], i));
  return Error::Ok;
}

Error Module::set_output(const std::string& name, const EValue& value, size_t index) {
  ETX_ASSIGN(Entry * found, entry(name));
  if (!value.is_tensor()) return fail(Error::InvalidArgument, "an output is bound to a tensor");
  const Tensor tensor = value.to_tensor();
  Method& method = found->loaded->method();
  const Error error = method.set_output_data_ptr(tensor.mutable_data_ptr(), tensor.nbytes(), index);
  if (error == Error::Ok) return error;
  return fail(error, "output " + std::to_string(index) + ": " + method.last_failure().reason);
}

Result<std::vector<EValue>> Module::execute(const std::string& name,
                                            const std::vector<EValue>& inputs) {
  ETX_TRY(set_inputs(name, inputs));
  return execute(name);
}

Result<std::vector<EValue>> Module::execute(const std::string& name) {
  ETX_ASSIGN(Entry * found, entry(name));
  for (size_t i = 0; i < found->is_set.size(); ++i) {
    if (!found->is_set[i]) {
      return fail(Error::InvalidState, found->loaded->input_label(i) + " of " + name +
                                           " was not set: expected " +
                                           found->loaded->expected_input(i));
    }
  }
  error_ = ErrorText();
  const Execution execution(*this, found->loaded->method());
  if (!found->loaded->execute(&error_)) return error_.error;
  return get_outputs(name);
}

Result<EValue> Module::get(const std::string& name, const std::vector<EValue>& inputs) {
  ETX_ASSIGN(const std::vector<EValue> outputs, execute(name, inputs));
  if (outputs.empty()) return fail(Error::InvalidArgument, name + " has no outputs");
  return EValue(outputs.front());
}

Result<EValue> Module::get_output(const std::string& name, size_t index) {
  ETX_ASSIGN(const std::vector<EValue> outputs, get_outputs(name));
  if (index < outputs.size()) return EValue(outputs[index]);
  return fail(Error::InvalidArgument, name + " has " + counted(outputs.size(), "output") +
                                          ", there is none at " + std::to_string(index));
}

Result<std::vector<EValue>> Module::get_outputs(const std::string& name) {
  const Entry* found = find(name);
  if (found == nullptr) return fail(Error::InvalidState, "method '" + name + "' is not loaded");
  const Method& method = found->loaded->method();
  std::vector<EValue> outputs;
  for (size_t i = 0; i < method.outputs_size(); ++i) outputs.push_back(method.get_output(i));
  return outputs;
}

Error Module::bind_state(const std::string& name, const std::string& buffer, void* data) {
  ETX_ASSIGN(Entry * found, entry(name));
  const Error error = found->loaded->bind_state(buffer, data);
  if (error == Error::Ok) return error;
  const char* reason = error == Error::NotFound       ? "the method has no such buffer"
                       : error == Error::InvalidState ? "the file plans its memory"
                                                      : "not enough memory";
  return fail(error, name + ": buffer '" + buffer + "': " + reason);
}

Error Module::seed(uint64_t seed, const std::string& name) {
  ETX_ASSIGN(Entry * found, entry(name));
  found->loaded->method().seed(seed);
  return Error::Ok;
}

void Module::cancel() {
  is_cancelled_ = true;
  Method* running = running_;
  if (running != nullptr) running->cancel();
}

void Module::clear_cancel() {
  is_cancelled_ = false;
  for (const auto& entry : methods_) entry->loaded->method().clear_cancel();
}

}  // namespace etx
