// SPDX-License-Identifier: BSD-3-Clause
// test_cancel <loop.pte> <plugin>: ends executions from other threads. `forward` counts without
// end, `wait` is one instruction that lasts until it is cancelled, `open` has a buffer without
// memory, `draw` returns where its random numbers are.
#include <etx/hosted/module.h>

#include <chrono>
#include <thread>

#include "check.h"

namespace {

struct Tracer final : etx::EventTracer {
  virtual ~Tracer() = default;
  void load(const char*, etx::Error, uint64_t, uint64_t) override {}
  void begin_execution(const char*) override {}
  void event(const etx::TraceEvent&) override {}
  void delegate_event(const etx::DelegateEvent&) override {}
  void allocation(uint32_t, uint64_t) override {}
  void end_execution(uint64_t, uint64_t) override { ++ended; }
  void output(uint32_t, const etx_value&) override {}
  int ended = 0;
};

void cancel_from_thread(etx::Method& method, int milliseconds) {
  std::thread other([&method, milliseconds] {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    method.cancel();
  });
  CHECK(method.execute() == etx::Error::Cancelled);
  other.join();
  CHECK(method.last_failure().error == etx::Error::Cancelled);
  CHECK(method.last_failure().instruction >= 0);
}

void cancel_loops(etx::Method& method) {
  method.set_instruction_budget(UINT64_MAX);
  for (int milliseconds : {0, 1, 20}) cancel_from_thread(method, milliseconds);
  Tracer tracer;
  method.set_tracer(&tracer);
  cancel_from_thread(method, 5);
  CHECK(tracer.ended == 1);
  method.set_tracer(nullptr);
  method.set_instruction_budget(1000);
  CHECK(method.execute() == etx::Error::OutOfResources);
}

void cancel_before(etx::Method& method) {
  method.cancel();
  method.cancel();
  CHECK(method.execute() == etx::Error::Cancelled && method.last_failure().instruction == 0);
  CHECK(method.execute() == etx::Error::OutOfResources);
  method.cancel();
  method.clear_cancel();
  CHECK(method.execute() == etx::Error::OutOfResources);
}

void cancel_between_steps(etx::Method& method) {
  CHECK(method.step() == etx::Error::Ok);
  CHECK(method.step() == etx::Error::Ok);
  method.cancel();
  CHECK(method.step() == etx::Error::Cancelled && method.last_failure().instruction == 2);
  CHECK(method.step() == etx::Error::Ok);
  CHECK(method.reset_execution() == etx::Error::InvalidState);
  method.cancel();
  CHECK(method.step() == etx::Error::Cancelled && method.reset_execution() == etx::Error::Ok);
}

void cancel_loaded(etx::LoadedMethod& loaded) {
  etx::ErrorText error;
  loaded.method().cancel();
  CHECK(!loaded.execute(&error) && error.error == etx::Error::Cancelled);
  CHECK(error.message == "cancelled at instruction 0 [Cancelled (0x40)]");
}

/// A request ends one execution: of the method that runs, or else the next one of any.
void cancel_module(const std::shared_ptr<etx::LoadedProgram>& program) {
  etx::Module module(program);
  (*module.method("forward"))->set_instruction_budget(1000);
  CHECK(module.load_method("wait") == etx::Error::Ok);
  std::thread other([&module] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    module.cancel();
  });
  CHECK(module.execute("wait").error() == etx::Error::Cancelled);
  other.join();
  CHECK(module.execute("forward").error() == etx::Error::OutOfResources);
  module.cancel();
  CHECK(module.execute("forward").error() == etx::Error::Cancelled);
  CHECK(module.execute("forward").error() == etx::Error::OutOfResources);
  module.cancel();
  module.clear_cancel();
  CHECK(module.execute("forward").error() == etx::Error::OutOfResources);
}

void bind_module(const std::shared_ptr<etx::LoadedProgram>& program) {
  etx::Module module(program);
  float state[] = {2, 3};
  const auto x = etx::ones({2, 1});
  CHECK(module.execute("open", x).error() == etx::Error::InvalidState);
  CHECK(module.bind_state("open", "none") == etx::Error::NotFound);
  CHECK(module.bind_state("open", "count", state) == etx::Error::Ok);
  CHECK(module.execute("open", x).ok() && state[0] == 3 && state[1] == 4);
  CHECK(module.bind_state("open", "count") == etx::Error::Ok);
  CHECK(module.execute("open", x)->at(0).toTensor().const_data_ptr<float>()[0] == 1);
}

/// Random numbers are the method's own, begin with loading, and again with each seed.
void seed_module(const std::shared_ptr<etx::LoadedProgram>& program) {
  etx::Module module(program);
  etx::Module other(program);
  const auto drawn = [](etx::Module& from) { return from.execute("draw")->at(1).toInt(); };
  CHECK(drawn(module) == 1 && drawn(module) == 3 && drawn(other) == 1);
  CHECK(module.seed(7, "draw") == etx::Error::Ok);
  CHECK(drawn(module) == 7001 && drawn(other) == 3 && drawn(module) == 7003);
  CHECK(module.seed(7, "none") != etx::Error::Ok);
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  etx::ErrorText error;
  CHECK(etx::Plugins::shared().load(arguments[2], &error.message) != nullptr);
  const auto program = etx::LoadedProgram::from_file(arguments[1], {}, &error);
  CHECK(program != nullptr);
  const auto loop = etx::LoadedMethod::load(program, "forward", &error);
  const auto wait = etx::LoadedMethod::load(program, "wait", &error);
  CHECK(loop != nullptr && wait != nullptr);
  cancel_loops(loop->method());
  cancel_before(loop->method());
  cancel_between_steps(loop->method());
  cancel_loaded(*loop);
  cancel_module(program);
  bind_module(program);
  seed_module(program);
  for (int milliseconds : {0, 5}) cancel_from_thread(wait->method(), milliseconds);
  CHECK(etx::to_string(etx::Error::Cancelled) == std::string("Cancelled"));
  return 0;
}
