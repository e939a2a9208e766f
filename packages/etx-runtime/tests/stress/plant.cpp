// SPDX-License-Identifier: BSD-3-Clause
#include <thread>

#include "stress.h"

namespace stress {
namespace {

void execute(etx::LoadedMethod& method) {
  etx::ErrorText error;
  for (int i = 0; i < 100; ++i) static_cast<void>(method.execute(&error));
}

}  // namespace

void plant(Stage& stage, const std::string& what) {
  if (what == "kernel") {
    const auto method = load(stage, stage.program, "racy");
    etx::ThreadPool::shared().resize(4);
    execute(*method);
  } else {
    CHECK(what == "method");
    const auto method = load(stage, stage.program, "squares");
    std::thread other([&] { execute(*method); });
    execute(*method);
    other.join();
  }
}

}  // namespace stress
