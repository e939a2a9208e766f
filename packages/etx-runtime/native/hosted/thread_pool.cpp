// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "../platform/os.h"

namespace etx {
namespace {

std::atomic<bool> was_forked{false};
thread_local bool is_worker = false;

/// One `parallel_for`: chunks are taken until none is left.
struct Job {
  Parallel::Body body;
  void* user;
  int64_t end;
  int64_t chunk;
  std::atomic<int64_t> next;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= end) return;
      body(user, begin, std::min(end, begin + chunk));
    }
  }
};

}  // namespace

struct ThreadPool::State {
  std::mutex users;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> size{1};
  Job* job = nullptr;
  uint64_t round = 0;
  size_t active = 0;
  bool stopping = false;

  void run(uint64_t seen) {
    is_worker = true;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      Job* current = job;
      if (current == nullptr) continue;
      ++active;
      lock.unlock();
      current->work();
      lock.lock();
      if (--active == 0) done.notify_one();
    }
  }

  /// Starts what is missing; goes on with fewer threads where the system refuses more.
  void start(size_t count) {
    try {
      while (threads.size() < count) {
        threads.emplace_back([this, seen = round] { run(seen); });
      }
    } catch (const std::exception&) {
      size = static_cast<uint32_t>(threads.size() + 1);
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    stopping = false;
  }
};

ThreadPool& ThreadPool::shared() {
  static ThreadPool& pool = *new ThreadPool(0);
  return pool;
}

ThreadPool::ThreadPool(uint32_t num_threads) : state_(new State()) {
  os::on_fork([] { was_forked.store(true, std::memory_order_relaxed); });
  resize(num_threads);
}

ThreadPool::~ThreadPool() { state_->stop(); }

uint32_t ThreadPool::num_threads() const {
  if (is_worker || was_forked.load(std::memory_order_relaxed)) return 1;
  return state_->size.load(std::memory_order_relaxed);
}

void ThreadPool::resize(uint32_t num_threads) {
  if (num_threads == 0) num_threads = os::usable_cores();
  const std::lock_guard<std::mutex> users(state_->users);
  if (num_threads == state_->size) return;
  state_->stop();
  state_->size = num_threads;
}

void ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, Body body, void* user) {
  if (end <= begin) return;
  const int64_t threads = num_threads();
  const int64_t smallest = std::max<int64_t>(grain, 1);
  std::unique_lock<std::mutex> users(state_->users, std::defer_lock);
  if (threads <= 1 || end - begin <= smallest || !users.try_lock()) {
    body(user, begin, end);
    return;
  }
  const int64_t share = (end - begin + threads * 4 - 1) / (threads * 4);
  Job job{body, user, end, std::max(smallest, share), {begin}};
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->start(static_cast<size_t>(threads - 1));
    state_->job = &job;
    ++state_->round;
  }
  state_->wake.notify_all();
  is_worker = true;
  job.work();
  is_worker = false;
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->job = nullptr;
  state_->done.wait(lock, [&] { return state_->active == 0; });
}

}  // namespace etx
