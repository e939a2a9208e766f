// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/thread_pool.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

struct Work {
  etx::ThreadPool* pool;
  std::vector<std::atomic<int>> counts;
  int64_t grain;
};

void body(void* user, int64_t begin, int64_t end) {
  auto* work = static_cast<Work*>(user);
  CHECK(end - begin >= work->grain || end == static_cast<int64_t>(work->counts.size()));
  for (int64_t i = begin; i < end; ++i) ++work->counts[static_cast<size_t>(i)];
}

void nested(void* user, int64_t begin, int64_t end) {
  auto* work = static_cast<Work*>(user);
  CHECK(work->pool->num_threads() == 1);
  work->pool->parallel_for(begin, end, 1, body, user);
  work->pool->resize(begin % 2 == 0 ? 3 : 4);
}

void cover(etx::ThreadPool& pool, size_t size, int64_t grain, etx::Parallel::Body run) {
  Work work{&pool, std::vector<std::atomic<int>>(size), grain};
  pool.parallel_for(0, static_cast<int64_t>(size), grain, run, &work);
  for (const auto& count : work.counts) CHECK(count == 1);
}

void rounds(etx::ThreadPool& pool, int count) {
  for (int round = 0; round < count; ++round) {
    cover(pool, 1000, 7, body);
    cover(pool, 3, 1, body);
    cover(pool, 100, 1, nested);
    cover(pool, 0, 1, body);
  }
}

void count_range(void* user, int64_t begin, int64_t end) {
  CHECK(begin < end);
  *static_cast<std::atomic<uint64_t>*>(user) +=
      static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
}

/// Ranges whose ends, and whose lengths, are those of int64.
void wide_ranges(etx::ThreadPool& pool) {
  for (const int64_t grain : {int64_t{-1}, int64_t{1}, int64_t{1} << 62, INT64_MAX}) {
    for (const int64_t begin : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX - 3}) {
      std::atomic<uint64_t> items{0};
      pool.parallel_for(begin, INT64_MAX, grain, count_range, &items);
      CHECK(items == static_cast<uint64_t>(INT64_MAX) - static_cast<uint64_t>(begin));
    }
  }
}

void several_users(etx::ThreadPool& pool) {
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&pool] {
      for (int round = 0; round < 300; ++round) cover(pool, 500, 3, body);
    });
  }
  for (int round = 0; round < 25; ++round) {
    for (int size : {1, 3, 8, 2}) pool.resize(static_cast<uint32_t>(size));
  }
  for (auto& user : users) user.join();
  CHECK(pool.num_threads() == 2);
}

struct Taken {
  etx::ThreadPool* pool;
  std::atomic<uint32_t> arrived{0};
  std::vector<int64_t> chunks[2];
};

void take(void* user, int64_t begin, int64_t) {
  auto* taken = static_cast<Taken*>(user);
  std::vector<int64_t>& own = taken->chunks[taken->pool->thread()];
  own.push_back(begin);
  if (own.size() > 1) return;
  ++taken->arrived;
  while (taken->arrived != 2) std::this_thread::yield();
}

/// Each of two threads takes the chunks of its half in order, before those of the other's.
void own_parts() {
  constexpr int64_t kHalf = 32;
  etx::ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    Taken taken;
    taken.pool = &pool;
    pool.parallel_for(0, 2 * kHalf, 1, take, &taken);
    for (int64_t thread : {0, 1}) {
      const std::vector<int64_t>& chunks = taken.chunks[thread];
      CHECK(!chunks.empty() && chunks[0] == thread * kHalf);
      for (size_t i = 1; i < chunks.size(); ++i) {
        const bool was_own = chunks[i - 1] / kHalf == thread, is_own = chunks[i] / kHalf == thread;
        CHECK(was_own || !is_own);
        CHECK(was_own != is_own || chunks[i] > chunks[i - 1]);
      }
    }
  }
}

}  // namespace

int main() {
  etx::ThreadPool pool(4);
  rounds(pool, 500);
  wide_ranges(pool);
  several_users(pool);
  own_parts();
  return 0;
}
