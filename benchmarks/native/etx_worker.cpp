// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/module.h>

#include <array>

#include "worker.h"

namespace {

/// A contiguous tensor over an input's bytes.
class Given {
 public:
  explicit Given(bench::Input& input) : sizes_(input.sizes), strides_(input.sizes.size()) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint8_t>(i);
    tensor_.sizes = sizes_.data();
    tensor_.strides = strides_.data();
    tensor_.dim_order = order_.data();
    tensor_.rank = static_cast<uint8_t>(sizes_.size());
    tensor_.dtype = static_cast<int8_t>(input.dtype);
    tensor_.data = input.bytes.data();
    tensor_.numel = 1;
    for (const int32_t size : sizes_) tensor_.numel *= size;
    etx::Tensor::set_strides(tensor_);
  }

  etx::EValue value() { return etx::EValue(&tensor_); }

 private:
  std::vector<int32_t> sizes_;
  std::vector<int32_t> strides_;
  std::array<uint8_t, etx::kMaxRank> order_{};
  etx::TensorImpl tensor_{};
};

/// ETX's hosted runtime over the plugins named on the command line.
class Runner {
 public:
  explicit Runner(const std::vector<std::string>& libraries) {
    std::string message;
    for (const std::string& library : libraries) {
      bench::check(etx::Plugins::shared().load(library, &message) != nullptr, message);
    }
  }

  void load(const char* path) {
    etx::ErrorText error;
    const auto program = etx::LoadedProgram::from_file(path, {}, &error);
    bench::check(program != nullptr, error.message);
    method_ = etx::LoadedMethod::load(program, "forward", &error);
    bench::check(method_ != nullptr, error.message);
  }

  void set_input(size_t index, bench::Input& input) {
    if (index == inputs_.size()) inputs_.push_back(std::make_unique<Given>(input));
    const etx::Error error = method_->method().set_input(inputs_[index]->value(), index);
    bench::check(error == etx::Error::Ok, "set_input");
  }

  void run() {
    etx::ErrorText error;
    bench::check(method_->execute(&error), error.message);
  }

 private:
  std::unique_ptr<etx::LoadedMethod> method_;
  std::vector<std::unique_ptr<Given>> inputs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::serve<Runner>(argc, argv); }
