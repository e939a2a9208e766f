// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cmath>
#include <thread>

#include "stress.h"

namespace stress {
namespace {

struct Tracer final : etx::EventTracer {
  virtual ~Tracer() = default;
  void load(const char*, etx::Error, uint64_t, uint64_t) override {}
  void begin_execution(const char*) override { events = 0; }
  void event(const etx::TraceEvent& event) override {
    CHECK(event.start <= event.end);
    ++events;
  }
  void delegate_event(const etx::DelegateEvent&) override {}
  void allocation(uint32_t, uint64_t) override {}
  void end_execution(uint64_t, uint64_t) override { CHECK(events > 0); }
  void output(uint32_t, const etx_value&) override {}
  int events = 0;
};

std::vector<int64_t> contiguous(const std::vector<int32_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return strides;
}

/// Returns the single output of an execution with a vector of one element.
float step_by(Stage& stage, etx::LoadedMethod& method, float by) {
  const Sample sample = {{1}, {by}, {}};
  check(stage, method, sample);
  return method.method().get_output(0).to_tensor().const_data_ptr<float>()[0];
}

}  // namespace

std::shared_ptr<etx::LoadedProgram> open(const Stage& stage, bool use_mmap) {
  etx::LoadedProgram::Options options;
  options.use_mmap = use_mmap;
  options.data_paths = {stage.folder + "/threads.ptd"};
  etx::ErrorText error;
  auto program = etx::LoadedProgram::from_file(stage.folder + "/threads.pte", options, &error);
  if (program == nullptr) std::fprintf(stderr, "%s\n", error.message.c_str());
  CHECK(program != nullptr);
  return program;
}

std::unique_ptr<etx::LoadedMethod> load(Stage& stage,
                                        const std::shared_ptr<etx::LoadedProgram>& program,
                                        const std::string& name) {
  etx::ErrorText error;
  auto method = etx::LoadedMethod::load(program, name, &error);
  if (method == nullptr) std::fprintf(stderr, "%s: %s\n", name.c_str(), error.message.c_str());
  CHECK(method != nullptr);
  ++stage.loads;
  return method;
}

void check(Stage& stage, etx::LoadedMethod& method, const Sample& sample) {
  etx::ErrorText error;
  const std::vector<int64_t> strides = contiguous(sample.sizes);
  bool ok = method.set_tensor(0, sample.input.data(), etx::ScalarType::Float,
                              {sample.sizes.data(), sample.sizes.size()},
                              {strides.data(), strides.size()}, true, &error);
  ok = ok && method.execute(&error);
  if (!ok) std::fprintf(stderr, "%s\n", error.message.c_str());
  CHECK(ok);
  ++stage.executions;
  if (sample.output.empty()) return;
  const etx::Tensor output = method.method().get_output(0).to_tensor();
  CHECK(static_cast<size_t>(output.numel()) == sample.output.size());
  for (size_t i = 0; i < sample.output.size(); ++i) {
    const float given = output.const_data_ptr<float>()[i];
    CHECK(std::fabs(given - sample.output[i]) <= 1e-4f + 1e-4f * std::fabs(sample.output[i]));
  }
}

void execute_cases(Stage& stage, size_t number) {
  Tracer tracer;
  for (size_t round = number; !stage.stop; ++round) {
    const Case& chosen = stage.cases[round % stage.cases.size()];
    const auto method = load(stage, stage.program, chosen.method);
    method->method().set_tracer(round % 3 == 0 ? &tracer : nullptr);
    for (size_t turn = 0; turn < 40 && !stage.stop; ++turn) {
      check(stage, *method, chosen.samples[(turn + number) % chosen.samples.size()]);
    }
  }
}

void count_up(Stage& stage) {
  const auto method = load(stage, stage.program, "count");
  while (!stage.stop) {
    CHECK(method->reset_state() == etx::Error::Ok);
    float expected = 5;
    for (int i = 1; i < 20; ++i) {
      expected += static_cast<float>(i);
      CHECK(step_by(stage, *method, static_cast<float>(i)) == expected);
      const auto state = method->method().get_attribute("count");
      CHECK(state.ok() && state->const_data_ptr<float>()[0] == expected);
      if (i % 7 == 0) state->mutable_data_ptr<float>()[0] = expected = 1;
    }
  }
}

void run_into_cancel(Stage& stage) {
  const auto method = load(stage, stage.program, "endless");
  method->method().set_instruction_budget(UINT64_MAX);
  while (!stage.stop) {
    std::atomic<bool> is_over{false};
    std::thread other([&] {
      while (!is_over) {
        method->method().cancel();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    CHECK(method->method().execute() == etx::Error::Cancelled);
    is_over = true;
    other.join();
    method->method().clear_cancel();
    ++stage.cancelled;
  }
}

}  // namespace stress
