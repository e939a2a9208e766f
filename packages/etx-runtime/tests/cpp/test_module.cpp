// SPDX-License-Identifier: BSD-3-Clause
// test_module <counter.pte> <plugin>: what code for ExecuTorch's Module, EValue, Tensor and
// TensorPtr calls, under the same names.
#include <etx/hosted/log.h>
#include <etx/hosted/module.h>

#include <type_traits>

#include "check.h"

namespace {

using etx::Error;
using etx::EValue;
using etx::Module;
using etx::ScalarType;
using etx::Tensor;
using etx::TensorPtr;

static_assert(
    std::is_same_v<decltype(std::declval<Module&>().forward()), etx::Result<std::vector<EValue>>>);
static_assert(std::is_convertible_v<TensorPtr, EValue> && std::is_convertible_v<Tensor, EValue> &&
              std::is_convertible_v<int64_t, EValue> && std::is_convertible_v<double, EValue> &&
              std::is_convertible_v<bool, EValue>);
static_assert(!std::is_convertible_v<std::shared_ptr<int>, EValue>);
static_assert(std::is_same_v<decltype(std::declval<Tensor>().numel()), etx::ssize_t>);

template <typename T>
bool says(const Module& module, const T& text) {
  return module.last_error().message.find(text) != std::string::npos;
}

void tensors() {
  const TensorPtr tensor = etx::make_tensor_ptr({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(tensor->dim() == 2 && tensor->size(-1) == 3 && tensor->numel() == 6);
  CHECK(tensor->nbytes() == 24 && tensor->element_size() == 4 && tensor->stride(0) == 3);
  CHECK(tensor->scalar_type() == ScalarType::Float && tensor->dtype() == ScalarType::Float);
  CHECK(tensor->sizes()[1] == 3 && tensor->strides()[1] == 1 && tensor->dim_order()[1] == 1);
  CHECK(tensor->const_data_ptr<float>()[5] == 6 && tensor->mutable_data_ptr() != nullptr);
  CHECK(etx::make_tensor_ptr({2, 2}, std::vector<float>{1}) == nullptr);
  CHECK(etx::make_tensor_ptr({-1}, std::vector<float>{1}) == nullptr);
  CHECK(etx::zeros(std::vector<int32_t>(17, 1)) == nullptr);
  CHECK(etx::zeros({1 << 30, 1 << 30}) == nullptr);
  CHECK(etx::make_tensor_ptr(std::vector<int64_t>{7})->scalar_type() == ScalarType::Long);
  CHECK(etx::make_tensor_ptr(std::vector<uint8_t>{7})->scalar_type() == ScalarType::Byte);
  CHECK(etx::make_tensor_ptr(std::vector<bool>{true})->scalar_type() == ScalarType::Bool);
  CHECK(etx::full({2}, etx::Half(1))->scalar_type() == ScalarType::Half);
  CHECK(etx::ones({2})->const_data_ptr<float>()[1] == 1);
  float data[6] = {1, 2, 3, 4, 5, 6};
  const TensorPtr transposed = etx::from_blob(data, {3, 2}, std::vector<int32_t>{1, 3});
  CHECK(transposed->dim_order()[0] == 1 && !transposed->is_contiguous());
  CHECK(etx::from_blob(data, {3, 2}, std::vector<int32_t>{4, 1}) == nullptr);
  CHECK(etx::from_blob(data, {3, 2}, std::vector<int32_t>{1}) == nullptr);
  const TensorPtr copy = etx::clone_tensor_ptr(*transposed);
  CHECK(copy->const_data_ptr() != data && copy->const_data_ptr<float>()[5] == 6);
  CHECK(copy->stride(1) == 3 && etx::from_blob(data, {6})->const_data_ptr() == data);
}

void values() {
  const EValue number = int64_t{3};
  CHECK(number.isInt() && number.toInt() == 3 && number.isScalar() && !number.isTensor());
  CHECK(EValue(2.5).isDouble() && EValue(2.5).toDouble() == 2.5 && EValue(true).toBool());
  CHECK(EValue().isNone() && !number.isString() && number.toScalar().to<int>() == 3);
  const TensorPtr tensor = etx::ones({1});
  const EValue value = tensor;
  CHECK(value.isTensor() && value.toTensor().const_data_ptr() == tensor->const_data_ptr());
}

void backend_options(const std::string& path) {
  Module module(path);
  etx::LoadBackendOptionsMap map;
  {
    const std::string name = "NoBackend";
    const etx::BackendOption options[] = {{"number", 3}, {"flag", true}, {"text", "some"}};
    CHECK(map.set_options(name.c_str(), options) == Error::Ok && map.size() == 1);
    CHECK(map.has_options("NoBackend") && map.get_options("NoBackend").size() == 3);
    CHECK(map.get_options("other").empty() && map.set_options("", options) != Error::Ok);
    CHECK(module.load(map) == Error::Ok);
  }
  CHECK(module.load_forward() == Error::NotFound && says(module, "no backend 'NoBackend'"));
  CHECK(module.load(etx::LoadBackendOptionsMap()) == Error::Ok);
  CHECK(module.load_forward() == Error::Ok);
}

void forward(Module& module) {
  CHECK(!module.is_loaded() && module.program() == nullptr);
  CHECK(module.load() == Error::Ok && module.is_loaded() && *module.num_methods() == 1);
  CHECK(module.method_names()->count("forward") == 1 && !module.is_method_loaded("forward"));
  CHECK(module.method_meta("forward")->num_inputs() == 1);
  CHECK(!module.method_meta("other").ok() && says(module, "no method 'other'"));
  CHECK(module.get_output().error() == Error::InvalidState && says(module, "is not loaded"));
  CHECK(module.load_forward() == Error::Ok && module.is_method_loaded("forward"));
  CHECK(module.forward().error() == Error::InvalidState);
  CHECK(says(module, "input 0 of forward was not set: expected float32[1]"));
  const TensorPtr x = etx::ones({1});
  CHECK(module.forward(x)->at(0).toTensor().const_data_ptr<float>()[0] == 6);
  CHECK(module.forward({x})->size() == 1 && module.forward()->size() == 1);
  CHECK(module.execute("forward", x).ok() && module.execute("forward", {x}).ok());
  CHECK(module.get("forward", {x})->toTensor().const_data_ptr<float>()[0] == 11);
  CHECK(module.set_input(x) == Error::Ok && module.set_inputs({x}) == Error::Ok);
  CHECK(module.get_output()->toTensor().numel() == 1 && module.get_outputs()->size() == 1);
  CHECK(module.get_output(1).error() == Error::InvalidArgument);
  CHECK(module.set_input(x, 1) == Error::InvalidArgument && says(module, "none at 1"));
  CHECK(module.set_input(int64_t{1}) == Error::InvalidArgument);
  CHECK(module.forward(etx::ones({2})).error() == Error::NotSupported &&
        says(module, "float32[2]"));
  CHECK(module.set_output(x) == Error::InvalidState && says(module, "planned"));
  CHECK((*module.method("forward"))->inputs_size() == 1);
  module.cancel();
  CHECK(module.forward().error() == Error::Cancelled && module.forward().ok());
  CHECK(module.unload_forward() && !module.unload_forward());
  CHECK(module.forward(x)->at(0).toTensor().const_data_ptr<float>()[0] == 6);
}

/// What a call returns with a text is not logged as an error, too.
void hear(void*, etx_log_level level, const char*) { CHECK(level == ETX_LOG_INFO); }

void outputs_are_inputs(Module& module) {
  const TensorPtr x = etx::full({1}, 2.0f);
  CHECK(module.load_forward() == Error::Ok);
  CHECK((*module.method("forward"))->reset_state() == Error::Ok);
  CHECK(module.forward(x)->at(0).toTensor().const_data_ptr<float>()[0] == 7);
  const EValue output = *module.get_output();
  CHECK(module.forward({output})->at(0).toTensor().const_data_ptr<float>()[0] == 14);
}

void read_whole(const char* path) {
  Module module(path, Module::LoadMode::File);
  CHECK(module.forward(etx::ones({1}))->at(0).toTensor().const_data_ptr<float>()[0] == 6);
  Module other(path, {}, Module::LoadMode::File);
  CHECK(other.load() == Error::Ok);
  Module missing("/none.pte", Module::LoadMode::File);
  CHECK(missing.load() == Error::AccessFailed && says(missing, "/none.pte: "));
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  CHECK(etx::set_log_sink(hear, nullptr) == Error::Ok);
  std::string message;
  CHECK(etx::Plugins::shared().load(arguments[2], &message) != nullptr);
  tensors();
  values();
  Module module(arguments[1]);
  forward(module);
  outputs_are_inputs(module);
  read_whole(arguments[1]);
  backend_options(arguments[1]);
  const Module shared(module.program());
  CHECK(shared.is_loaded());
  return 0;
}
