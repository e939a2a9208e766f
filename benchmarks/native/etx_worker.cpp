// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/module.h>

#include "worker.h"

namespace {

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
    std::vector<int64_t> strides(input.sizes.size(), 1);
    for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * input.sizes[i];
    etx::ErrorText error;
    const bool ok =
        method_->set_tensor(index, input.bytes.data(), static_cast<etx::ScalarType>(input.dtype),
                            input.sizes, strides, false, &error);
    bench::check(ok, error.message);
  }

  void run() {
    etx::ErrorText error;
    bench::check(method_->execute(&error), error.message);
  }

 private:
  std::unique_ptr<etx::LoadedMethod> method_;
};

}  // namespace

int main(int argc, char** argv) { return bench::serve<Runner>(argc, argv); }
