// SPDX-License-Identifier: BSD-3-Clause
// Programs through etx/etx.h, from several threads at once: one program, a method for each, and one
// that a thread executes while others cancel it.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <etx/etx.h>

#include "mutate.h"
#include "run.h"

namespace {

constexpr size_t kThreads = 3;
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostTurns = 4;

/// Traps unless a call that failed says why.
bool is_ok(etx_status status) {
  if (status == ETX_OK) return true;
  if (etx_last_error()[0] != '\0' && std::strcmp(etx_status_name(status), "Unknown") != 0) {
    return false;
  }
  std::fprintf(stderr, "a call failed without a reason: 0x%02x\n", static_cast<unsigned>(status));
  std::abort();
}

uint64_t sum(const void* data, size_t size) {
  uint64_t total = 0;
  for (size_t i = 0; i < size; ++i) total += static_cast<const uint8_t*>(data)[i];
  return total;
}

/// One thread's view of the program.
class User {
 public:
  User(etx_program* program, const char* name, uint32_t seed)
      : program_(program), name_(name), random_(seed) {}
  ~User() { etx_method_free(method_); }
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  void ask() {
    etx_value_info info = {};
    info.struct_size = random_.one_in(4) ? random_.below(sizeof(info)) : sizeof(info);
    const auto index = static_cast<size_t>(random_.number());
    is_ok(etx_program_input_info(program_, name_, index, &info));
    is_ok(etx_program_output_info(program_, name_, index, &info));
    const bool has_buffer = is_ok(etx_program_buffer_info(program_, name_, index, &info));
    if (has_buffer && info.struct_size == sizeof(info)) buffer_ = info.name;
    size_t size = random_.below(64);
    std::vector<uint8_t> data(size);
    is_ok(etx_program_named_data(program_, "etx/constraints", data.data(), &size));
    if (etx_program_method_name(program_, index) == nullptr && index == 0) std::abort();
  }

  void load() {
    etx_method* method = nullptr;
    if (!is_ok(etx_method_load(program_, name_, &method))) return;
    etx_method_free(method_);
    method_ = method;
    etx_method_set_instruction_budget(method_, 300);
  }

  void set_inputs() {
    for (size_t i = 0; i < etx_method_num_inputs(method_); ++i) {
      etx_value_info info = {};
      info.struct_size = sizeof(info);
      if (!is_ok(etx_program_input_info(program_, name_, i, &info))) continue;
      if (info.tag == ETX_TAG_INT) is_ok(etx_method_set_int(method_, i, random_.number()));
      if (info.tag == ETX_TAG_BOOL) is_ok(etx_method_set_bool(method_, i, random_.one_in(2)));
      if (info.tag == ETX_TAG_DOUBLE) is_ok(etx_method_set_double(method_, i, 0.5));
      if (info.tag != ETX_TAG_TENSOR || info.nbytes > kMostBytes) continue;
      inputs_.emplace_back(info.nbytes + 16, static_cast<uint8_t>(random_.below(256)));
      const int32_t dtype = random_.one_in(8) ? ETX_INT64 : info.dtype;
      const size_t rank = random_.one_in(8) ? random_.below(info.rank + 1) : info.rank;
      is_ok(etx_method_set_tensor(method_, i, inputs_.back().data(), dtype, rank, info.sizes,
                                  nullptr));
    }
  }

  void execute() { is_ok(etx_method_execute(method_)); }

  uint64_t read() {
    uint64_t total = 0;
    etx_output output = {};
    output.struct_size = sizeof(output);
    for (size_t i = 0; i <= etx_method_num_outputs(method_); ++i) {
      if (!is_ok(etx_method_get_output(method_, i, &output))) continue;
      if (output.tag == ETX_TAG_TENSOR && output.data != nullptr) {
        total += sum(output.data, output.nbytes);
      }
    }
    if (buffer_ != nullptr && is_ok(etx_method_get_buffer(method_, buffer_, &output))) {
      const std::vector<uint8_t> bytes(output.nbytes, 1);
      is_ok(etx_method_set_buffer(method_, buffer_, bytes.data(), random_.below(4) + bytes.size()));
    }
    is_ok(etx_method_reset_state(method_));
    return total;
  }

  void run() {
    for (size_t turn = 1 + random_.below(kMostTurns); turn > 0; --turn) {
      ask();
      if (method_ == nullptr || random_.one_in(4)) load();
      if (method_ == nullptr) continue;
      set_inputs();
      execute();
      total_ = total_ + read();
    }
  }

  etx_method* method() const { return method_; }

 private:
  etx_program* program_;
  const char* name_;
  const char* buffer_ = nullptr;
  etx::fuzz::Random random_;
  etx_method* method_ = nullptr;
  std::vector<std::vector<uint8_t>> inputs_;
  volatile uint64_t total_ = 0;
};

/// Whether arenas, and outputs that lie in none, are less than a megabyte.
bool is_small(const etx_program* program, const char* name) {
  size_t method_bytes = 0, count = 0, total = 0, inputs = 0, outputs = 0, buffers = 0;
  if (!is_ok(etx_program_required_bytes(program, name, &method_bytes, nullptr, &count))) {
    return false;
  }
  std::vector<size_t> arenas(count);
  if (!is_ok(etx_program_required_bytes(program, name, &method_bytes, arenas.data(), &count))) {
    return false;
  }
  for (const size_t arena : arenas) {
    if (arena > kMostBytes || (total += arena) > kMostBytes) return false;
  }
  if (!is_ok(etx_program_method_counts(program, name, &inputs, &outputs, &buffers))) return false;
  for (size_t i = 0; i < outputs; ++i) {
    etx_value_info info = {};
    info.struct_size = sizeof(info);
    if (!is_ok(etx_program_output_info(program, name, i, &info))) continue;
    if (info.nbytes > kMostBytes || (total += info.nbytes) > kMostBytes) return false;
  }
  return method_bytes <= kMostBytes;
}

void use(etx_program* program, const char* name, uint32_t seed) {
  User shared(program, name, seed);
  shared.load();
  std::vector<std::unique_ptr<User>> users;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    users.push_back(std::make_unique<User>(program, name, seed + static_cast<uint32_t>(i)));
    threads.emplace_back([&shared, user = users.back().get()] {
      user->run();
      if (shared.method() != nullptr) etx_method_cancel(shared.method());
    });
  }
  if (shared.method() != nullptr) {
    shared.set_inputs();
    shared.execute();
  }
  for (std::thread& thread : threads) thread.join();
  etx_program_free(program);
  if (shared.method() != nullptr) {
    etx_method_clear_cancel(shared.method());
    shared.execute();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool ready = [] {
    for (const etx_plugin* plugin : etx::fuzz::plugins()) is_ok(etx_add_plugin(plugin));
    etx_set_num_threads(2);
    return is_ok(etx_set_log_sink([](void*, etx_log_level, const char*) {}, nullptr));
  }();
  if (!ready) std::abort();
  std::atomic<int> released{0};
  uint32_t seed = static_cast<uint32_t>(sum(data, size));
  {
    const etx::fuzz::Copy copy(data, size);
    etx_program* program = nullptr;
    const auto release = [](void* context, const void*) {
      ++*static_cast<std::atomic<int>*>(context);
    };
    if (is_ok(etx_program_load_memory(copy.data(), size, release, &released, nullptr, &program))) {
      const size_t count = etx_program_num_methods(program);
      const char* name = count == 0 ? nullptr : etx_program_method_name(program, seed % count);
      const std::string kept = name == nullptr ? "" : name;
      if (name != nullptr && is_small(program, name)) {
        use(program, kept.c_str(), seed);
      } else {
        etx_program_free(program);
      }
    }
  }
  if (released == 1) return 0;
  std::fprintf(stderr, "memory was released %d times\n", released.load());
  std::abort();
}
