// SPDX-License-Identifier: BSD-3-Clause
// Every interface of the core, subclassed with RTTI and exceptions against a core without them, and
// the log of the platform.
#include <etx/platform.h>
#include <etx/program.h>

#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "check.h"

namespace {

struct Loader final : etx::DataLoader {
  virtual ~Loader() = default;
  etx::Result<etx::FreeableBuffer> load(size_t, size_t, const SegmentInfo&) const override {
    try {
      throw std::runtime_error("offline");
    } catch (const std::exception&) {
      return etx::Error::AccessFailed;
    }
  }
  etx::Result<size_t> size() const override { return size_t{4096}; }
};

struct Sink final : etx::FailureSink {
  virtual ~Sink() = default;
  void report(const etx::Failure& failure) override { failures.push_back(failure); }
  std::vector<etx::Failure> failures;
};

struct Tracer final : etx::EventTracer {
  virtual ~Tracer() = default;
  void load(const char*, etx::Error, uint64_t, uint64_t) override {}
  void begin_execution(const char*) override {}
  void event(const etx::TraceEvent&) override {}
  void delegate_event(const etx::DelegateEvent&) override {}
  void allocation(uint32_t, uint64_t) override {}
  void end_execution(uint64_t, uint64_t) override {}
  void output(uint32_t, const etx_value&) override {}
};

struct Data final : etx::NamedDataMap {
  virtual ~Data() = default;
  etx::Result<etx::Span<const uint8_t>> get_data(const char*) const override {
    return etx::Error::NotFound;
  }
  etx::Result<etx::TensorLayout> get_tensor_layout(const char*) const override {
    return etx::Error::NotFound;
  }
  size_t get_num_keys() const override { return 0; }
  const char* get_key(size_t) const override { return nullptr; }
};

struct Threads final : etx::Parallel {
  virtual ~Threads() = default;
  uint32_t num_threads() const override { return 1; }
  void parallel_for(int64_t begin, int64_t end, int64_t, Body body, void* user) override {
    body(user, begin, end);
  }
};

struct Arena final : etx::MemoryAllocator {
  Arena() : MemoryAllocator(0, nullptr) {}
  virtual ~Arena() = default;
  void* allocate(size_t, size_t) override { return nullptr; }
};

std::vector<std::string> messages;

template <typename Derived, typename Base>
void check_type(Base& base) {
  CHECK(typeid(base) == typeid(Derived));
  CHECK(dynamic_cast<Derived*>(&base) == &base);
}

}  // namespace

extern "C" void etx_pal_log(enum etx_log_level level, const char* message, const char*) {
  CHECK(level == ETX_LOG_ERROR);
  messages.emplace_back(message);
}

int main() {
  Loader loader;
  Sink sink;
  Tracer tracer;
  Data data;
  Threads threads;
  Arena arena;
  check_type<Loader, etx::DataLoader>(loader);
  check_type<Sink, etx::FailureSink>(sink);
  check_type<Tracer, etx::EventTracer>(tracer);
  check_type<Data, etx::NamedDataMap>(data);
  check_type<Threads, etx::Parallel>(threads);
  check_type<Arena, etx::MemoryAllocator>(arena);
  CHECK(arena.allocate_list<int>(4) == nullptr);
  const auto program = etx::Program::load(&loader, etx::Program::Verification::Full, &sink);
  CHECK(program.error() == etx::Error::AccessFailed);
  alignas(16) const char none[64] = {};
  const etx::BufferDataLoader zeros(none, sizeof(none));
  CHECK(etx::Program::load(&zeros).error() == etx::Error::InvalidProgram);
  CHECK(messages == std::vector<std::string>{"this is not a .pte file: ET12 is missing"});
  return 0;
}
