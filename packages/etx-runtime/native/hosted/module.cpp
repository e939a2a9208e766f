// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/module.h>

namespace etx {

Error Module::load() {
  if (program_ != nullptr) return Error::Ok;
  LoadedProgram::Options options;
  options.data_paths = data_paths_;
  program_ = LoadedProgram::from_file(path_, options, &error_);
  return program_ == nullptr ? error_.error : Error::Ok;
}

LoadedMethod* Module::find(const std::string& name) {
  for (auto& entry : methods_) {
    if (entry.first == name) return entry.second.get();
  }
  return nullptr;
}

Error Module::load_method(const std::string& name) {
  ETX_TRY(load());
  if (find(name) != nullptr) return Error::Ok;
  auto method = LoadedMethod::load(program_, name, &error_);
  if (method == nullptr) return error_.error;
  methods_.emplace_back(name, std::move(method));
  return Error::Ok;
}

Result<std::vector<EValue>> Module::execute(const std::string& name,
                                            const std::vector<EValue>& inputs) {
  ETX_TRY(load_method(name));
  LoadedMethod& loaded = *find(name);
  Method& method = loaded.method();
  if (inputs.size() != method.inputs_size()) {
    error_ = ErrorText();
    error_.error = Error::InvalidArgument;
    error_.message = name + " takes " + std::to_string(method.inputs_size()) + " inputs, got " +
                     std::to_string(inputs.size());
    return error_.error;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!loaded.set_value(i, inputs[i], &error_)) return error_.error;
  }
  if (!loaded.execute(&error_)) return error_.error;
  std::vector<EValue> outputs;
  for (size_t i = 0; i < method.outputs_size(); ++i) outputs.push_back(method.get_output(i));
  return outputs;
}

std::vector<std::string> Module::method_names() {
  std::vector<std::string> names;
  if (load() != Error::Ok) return names;
  for (size_t i = 0; i < program_->program().num_methods(); ++i) {
    names.emplace_back(*program_->program().get_method_name(i));
  }
  return names;
}

}  // namespace etx
