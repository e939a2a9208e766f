// SPDX-License-Identifier: BSD-3-Clause
// bench_dispatch <model.pte> <plugin> [executions]: nanoseconds per execution and instruction of a
// model whose inputs are float tensors, all ones.
#include <etx/hosted/module.h>
#include <etx/platform.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** arguments) {
  if (count < 3) return std::fprintf(stderr, "bench_dispatch MODEL PLUGIN [EXECUTIONS]\n"), 2;
  const int executions = count > 3 ? std::atoi(arguments[3]) : 20000;
  etx::ErrorText error;
  std::unique_ptr<etx::LoadedMethod> method;
  if (etx::Plugins::shared().load(arguments[2], &error.message) != nullptr) {
    auto program = etx::LoadedProgram::from_file(arguments[1], {}, &error);
    if (program != nullptr) method = etx::LoadedMethod::load(program, "forward", &error);
  }
  bool ok = method != nullptr;
  std::vector<float> ones;
  for (size_t i = 0; ok && i < method->method().inputs_size(); ++i) {
    const etx::TensorInfo info = *method->method().method_meta().input_tensor_meta(i);
    const std::vector<int32_t> sizes(info.sizes().begin(), info.sizes().end());
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    ones.assign(info.nbytes() / sizeof(float), 1.0f);
    ok = method->set_tensor(i, ones.data(), info.scalar_type(), {sizes.data(), sizes.size()},
                            {strides.data(), strides.size()}, true, &error);
  }
  std::vector<uint64_t> times;
  for (int round = 0; ok && round < 11; ++round) {
    const uint64_t start = etx_pal_current_ticks();
    for (int i = 0; ok && i < executions; ++i) ok = method->execute(&error);
    times.push_back(etx_pal_current_ticks() - start);
  }
  if (!ok) return std::fprintf(stderr, "%s\n", error.message.c_str()), 1;
  std::sort(times.begin(), times.end());
  const double nanoseconds = static_cast<double>(times[times.size() / 2]) / executions;
  const auto instructions = static_cast<double>(method->method().method_meta().num_instructions());
  std::printf("{\"ns_per_execution\": %.1f, \"ns_per_instruction\": %.2f}\n", nanoseconds,
              nanoseconds / instructions);
  return 0;
}
