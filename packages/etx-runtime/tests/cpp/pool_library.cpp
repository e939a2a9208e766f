// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/thread_pool.h>

#include <atomic>

extern "C" __attribute__((visibility("default"))) bool use_pool() {
  std::atomic<int64_t> count{0};
  etx::ThreadPool& pool = etx::ThreadPool::shared();
  pool.resize(4);
  const auto add = [](void* user, int64_t begin, int64_t end) {
    *static_cast<std::atomic<int64_t>*>(user) += end - begin;
  };
  pool.parallel_for(0, 100, 1, add, &count);
  return count == 100;
}
