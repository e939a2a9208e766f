// SPDX-License-Identifier: BSD-3-Clause
/// What a prepared call asks of its context, and the loop that times it: `parallel_for` on the
/// calling thread and one more, temporary memory from one arena.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace {

struct Task {
  std::atomic<int64_t> next;
  int64_t end, grain;
  void (*body)(void*, int64_t, int64_t);
  void* user;

  void run() {
    for (int64_t b; (b = next.fetch_add(grain)) < end;) {
      body(user, b, b + grain < end ? b + grain : end);
    }
  }
};

Task task;
std::atomic<int> asked{0}, done{0};

void serve() {
  for (int seen = 0;; ++seen) {
    while (asked.load() == seen) std::this_thread::yield();
    task.run();
    done.store(seen + 1);
  }
}

constexpr size_t kArena = size_t{256} << 20;
alignas(64) char arena[kArena];
size_t used = 0;

}  // namespace

extern "C" void pool_parallel_for(void*, int64_t begin, int64_t end, int64_t grain,
                                  void (*body)(void*, int64_t, int64_t), void* user) {
  static std::thread* const helper = new std::thread(serve);
  (void)helper;
  task.next = begin, task.end = end, task.grain = grain;
  task.body = body, task.user = user;
  const int ticket = asked.fetch_add(1) + 1;
  task.run();
  while (done.load() != ticket) std::this_thread::yield();
}

extern "C" void* pool_allocate(void*, size_t size, size_t alignment) {
  const size_t begin = (used + alignment - 1) / alignment * alignment;
  if (size > kArena || begin > kArena - size) return nullptr;
  used = begin + size;
  return arena + begin;
}

/// Runs a kernel `count` times; returns the nanoseconds of all, -1 where it failed.
extern "C" int64_t pool_time(uint32_t (*run)(void*, void*), void* context, void* arguments,
                             int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    used = 0;
    if (run(context, arguments) != 0) return -1;
  }
  const auto spent = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
}
