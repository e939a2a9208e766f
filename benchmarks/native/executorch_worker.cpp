// SPDX-License-Identifier: BSD-3-Clause
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <memory>

#include "worker.h"

namespace {

using executorch::aten::ScalarType;
using executorch::extension::Module;
using executorch::runtime::Error;

/// ExecuTorch's Module over the libraries of its wheel.
class Runner {
 public:
  explicit Runner(const std::vector<std::string>&) {}

  void load(const char* path) {
    module_ = std::make_unique<Module>(path, Module::LoadMode::Mmap);
    const Error error = module_->load_forward();
    bench::check(error == Error::Ok, "load: " + std::to_string(static_cast<int>(error)));
  }

  void set_input(size_t index, bench::Input& input) {
    if (index == inputs_.size()) {
      std::vector<executorch::aten::SizesType> sizes(input.sizes.begin(), input.sizes.end());
      inputs_.push_back(executorch::extension::make_tensor_ptr(
          std::move(sizes), input.bytes.data(), static_cast<ScalarType>(input.dtype)));
    }
    bench::check(module_->set_input("forward", *inputs_[index], index) == Error::Ok, "set_input");
  }

  void run() {
    const auto result = module_->execute("forward");
    bench::check(result.ok(), "execute");
  }

 private:
  std::unique_ptr<Module> module_;
  std::vector<executorch::extension::TensorPtr> inputs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::serve<Runner>(argc, argv); }
