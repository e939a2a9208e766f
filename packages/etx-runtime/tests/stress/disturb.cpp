// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>

#include <chrono>
#include <thread>

#include "stress.h"

namespace stress {
namespace {

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

void resize_pool(Stage& stage) {
  for (uint32_t i = 0; !stage.stop; ++i) {
    etx::ThreadPool::shared().resize(1 + (i * 3) % 6);
    CHECK(etx::ThreadPool::shared().num_threads() >= 1);
    pause();
  }
}

struct Visits {
  std::thread::id caller;
  std::atomic<int64_t> items{0};
  std::atomic<uint64_t> helped{0};
};

void visit(void* user, int64_t begin, int64_t end) {
  auto& visits = *static_cast<Visits*>(user);
  visits.items += end - begin;
  if (std::this_thread::get_id() != visits.caller) ++visits.helped;
  pause();
}

/// A pool of its own, whose threads do take part, and the shared one.
void use_pools(Stage& stage) {
  while (!stage.stop) {
    Visits visits;
    visits.caller = std::this_thread::get_id();
    etx::ThreadPool pool(3);
    for (int i = 0; i < 10; ++i) {
      pool.parallel_for(0, 100, 10, visit, &visits);
      etx::ThreadPool::shared().parallel_for(0, 100, 10, visit, &visits);
    }
    CHECK(visits.items == 2000);
    stage.helped += visits.helped;
  }
}

void load_plugins(Stage& stage) {
  static constexpr etx_plugin kOther = {
      sizeof(etx_plugin), ETX_ABI_MAJOR, ETX_ABI_MINOR, "other", "1", nullptr, 0, nullptr, 0};
  etx::Plugins& plugins = etx::Plugins::shared();
  while (!stage.stop) {
    std::string message;
    for (const std::string& path : stage.plugins) CHECK(plugins.load(path, &message) != nullptr);
    CHECK(plugins.load(stage.folder + "/none.so", &message) == nullptr && !message.empty());
    CHECK(plugins.add_first(&kOther, &message));
    CHECK(plugins.list().size() == stage.plugins.size() + 1);
    CHECK(plugins.remove(&kOther));
    pause();
  }
}

struct Heard {
  std::atomic<uint64_t> messages{0};
  std::atomic<bool> is_over{false};
};

void hear(void* user, etx_log_level, const char* message) {
  auto& heard = *static_cast<Heard*>(user);
  CHECK(!heard.is_over && message[0] != '\0');
  ++heard.messages;
}

/// Sinks that go as soon as they are replaced.
void change_sinks(Stage& stage) {
  auto before = std::make_unique<Heard>();
  CHECK(etx::set_log_sink(hear, before.get()) == etx::Error::Ok);
  while (!stage.stop) {
    auto next = std::make_unique<Heard>();
    etx::set_log_level(stage.loads % 2 == 0 ? ETX_LOG_INFO : ETX_LOG_ERROR);
    CHECK(etx::set_log_sink(hear, next.get()) == etx::Error::Ok);
    before->is_over = true;
    stage.heard += before->messages;
    before = std::move(next);
    pause();
  }
  CHECK(etx::set_log_sink(nullptr, nullptr) == etx::Error::Ok);
}

void talk(Stage& stage) {
  etx::set_log_level(ETX_LOG_FATAL);
  while (!stage.stop) {
    etx::log(ETX_LOG_INFO, "loads " + std::to_string(stage.loads));
    if (stage.heard > 0) etx_pal_log(ETX_LOG_ERROR, "an error", "stress");
    pause();
  }
}

void read_metadata(Stage& stage) {
  const etx::Program& program = stage.program->program();
  const etx::NamedDataMap& data = *stage.program->data();
  while (!stage.stop) {
    for (size_t i = 0; i < program.num_methods(); ++i) {
      const auto meta = program.method_meta(*program.get_method_name(i));
      CHECK(meta.ok() && meta->required_bytes() > 0);
    }
    const auto bias = program.load_named_data("bias");
    CHECK(bias.ok() && bias->size() == sizeof(float));
    const auto weight = data.get_data("weight");
    CHECK(weight.ok() && weight->size() == 32 * sizeof(float));
    CHECK(data.get_tensor_layout("weight").ok() && !data.get_data("other").ok());
    pause();
  }
}

/// Programs of its own, each gone before the method that was loaded from it.
void open_files(Stage& stage) {
  for (size_t i = 0; !stage.stop; ++i) {
    const Case& chosen = stage.cases[i % stage.cases.size()];
    auto program = open(stage, i % 2 == 0);
    const auto method = load(stage, program, chosen.method);
    program.reset();
    check(stage, *method, chosen.samples[0]);
  }
}

void fail(Stage& stage) {
  while (!stage.stop) {
    etx::ErrorText error;
    CHECK(etx::LoadedMethod::load(stage.program, "missing", &error) == nullptr);
    CHECK(error.error == etx::Error::OperatorMissing && error.missing.size() == 1);
    CHECK(etx::LoadedMethod::load(stage.program, "none", &error) == nullptr);
    const auto method = load(stage, stage.program, "squares");
    const int32_t size = 4000;
    const int64_t stride = 1;
    CHECK(!method->set_tensor(0, &size, etx::ScalarType::Float, {&size, 1}, {&stride, 1}, true,
                              &error));
    ++stage.refused;
    pause();
  }
}

}  // namespace

const std::vector<Work> kDisturbances = {resize_pool,  use_pools,     change_sinks,   talk,
                                         load_plugins, read_metadata, open_files,     fail,
                                         count_up,     count_up,      run_into_cancel};

}  // namespace stress
