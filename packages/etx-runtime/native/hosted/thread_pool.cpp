// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/thread_pool.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <etx/platform.h>

#include "../platform/os.h"

namespace etx {
namespace {

using Clock = std::chrono::steady_clock;

/// Kernels of a method follow each other within this time; a sleeping thread takes longer to wake.
constexpr Clock::duration kPatience = std::chrono::microseconds(100);
/// Most kernels follow each other within this time, and a call that yields takes a microsecond.
constexpr Clock::duration kLooks = std::chrono::microseconds(25);

/// How many forks lie between the process that loaded this library and this one.
std::atomic<uint64_t> forks{0};
/// A body runs on this thread.
thread_local bool is_inside = false;
/// Of its pool's threads, the caller's 0.
thread_local uint32_t own_index = 0;

uint32_t default_threads() {
  const char* text = std::getenv("ETX_NUM_THREADS");
  if (text == nullptr || *text == '\0') return usable_cores();
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  if (*end == '\0' && count >= 1 && count <= long{ThreadPool::kMaxThreads}) {
    return static_cast<uint32_t>(count);
  }
  etx_pal_log(ETX_LOG_ERROR, "expected 1 to 1024 threads; every usable core is used",
              "ETX_NUM_THREADS");
  return usable_cores();
}

/// Items of [begin, end), which may be more than int64 holds.
uint64_t count_items(int64_t begin, int64_t end) {
  return static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
}

/// Rounded up.
uint64_t divide(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// The chunks [next, end) of one thread, on cache lines of their own.
struct alignas(128) Lane {
  std::atomic<uint64_t> next{0};
  uint64_t end = 0;
};

/// One `parallel_for`. Each thread takes the chunks of its lane in order, since what it wrote for
/// the last kernel lies in its cache, and then those that others did not come to.
struct Job {
  Parallel::Body body;
  void* user;
  int64_t begin;
  int64_t end;
  uint64_t chunk;
  uint64_t num_chunks;
  Lane* lanes;
  size_t num_lanes;

  int64_t start_of(uint64_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(begin) + index * chunk);
  }

  void deal() {
    const uint64_t each = num_chunks / num_lanes, more = num_chunks % num_lanes;
    uint64_t first = 0;
    for (size_t i = 0; i < num_lanes; ++i) {
      lanes[i].next.store(first, std::memory_order_relaxed);
      first += each + (i < more ? 1 : 0);
      lanes[i].end = first;
    }
  }

  void work(size_t own) {
    for (size_t i = 0; i < num_lanes; ++i) {
      Lane& lane = lanes[(own + i) % num_lanes];
      while (lane.next.load(std::memory_order_relaxed) < lane.end) {
        const uint64_t index = lane.next.fetch_add(1, std::memory_order_relaxed);
        if (index >= lane.end) break;
        body(user, start_of(index), index + 1 == num_chunks ? end : start_of(index + 1));
      }
    }
  }
};

/// Tells the core that its thread waits for memory.
void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("yield");
#endif
}

/// Looks at memory only for up to `looks`, then lets other threads run between looks.
template <typename Condition>
void spin_until(Clock::duration looks, Condition condition) {
  const auto start = Clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return;
      relax();
    }
  } while (Clock::now() < start + looks);
  while (!condition() && Clock::now() < start + kPatience) std::this_thread::yield();
}

}  // namespace

struct ThreadPool::State {
  explicit State(uint32_t num_threads) : size(num_threads) {}

  const uint64_t generation = forks.load(std::memory_order_relaxed);
  /// 0 until the default is needed.
  std::atomic<uint32_t> size;
  /// Held by the `parallel_for` that has the threads; guards what follows.
  std::mutex users;
  std::vector<std::thread> threads;
  std::unique_ptr<Lane[]> lanes;  ///< One for each of `threads` and one for the caller.
  bool is_closed = false;

  /// Held to sleep and to wake only: who spins needs no lock, nor a system call.
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  // In sequence: who writes one of a pair and reads the other sees what the other side wrote, or is
  // seen. Pairs: round and sleeping, job and active, active and is_waiting.
  std::atomic<uint64_t> round{0};
  std::atomic<size_t> sleeping{0};
  std::atomic<Job*> job{nullptr};
  std::atomic<size_t> active{0};
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> stopping{false};
  /// Nothing, where another thread may need the core that looks.
  std::atomic<Clock::duration> looks{kLooks};

  uint32_t limit() {
    uint32_t known = size.load(std::memory_order_relaxed);
    if (known != 0) return known;
    const uint32_t found = default_threads();
    return size.compare_exchange_strong(known, found) ? found : known;
  }

  void serve(uint64_t seen, uint32_t index) {
    is_inside = true;
    own_index = index;
    for (;;) {
      const auto is_called = [&] { return round.load() != seen; };
      spin_until(looks.load(std::memory_order_relaxed), is_called);
      if (!is_called()) {
        std::unique_lock<std::mutex> lock(mutex);
        ++sleeping;
        wake.wait(lock, is_called);
        --sleeping;
      }
      seen = round.load();
      if (stopping.load()) return;
      ++active;
      if (Job* current = job.load()) current->work(index);
      if (--active == 0 && is_waiting.load()) {
        const std::lock_guard<std::mutex> lock(mutex);
        done.notify_one();
      }
    }
  }

  void run(Job& current) {
    announce(&current, false);
    is_inside = true;
    current.work(0);
    is_inside = false;
    job.store(nullptr);
    const auto is_done = [&] { return active.load() == 0; };
    spin_until(looks.load(std::memory_order_relaxed), is_done);
    if (is_done()) return;
    std::unique_lock<std::mutex> lock(mutex);
    is_waiting.store(true);
    done.wait(lock, is_done);
    is_waiting.store(false);
  }

  /// Starts or ends threads to be as many as `limit` says. Needs `users`.
  void fit() {
    const size_t count = is_closed ? 0 : limit() - size_t{1};
    if (threads.size() > count) {
      announce(nullptr, true);
      for (std::thread& thread : threads) thread.join();
      threads.clear();
      stopping = false;
    }
    if (threads.size() == count) return;
    static const uint32_t cores = usable_cores();
    looks.store(count < cores ? kLooks : Clock::duration(0), std::memory_order_relaxed);
    try {
      lanes.reset(new Lane[count + 1]);
      while (threads.size() < count) {
        const auto index = static_cast<uint32_t>(threads.size() + 1);
        threads.emplace_back([this, index, seen = round.load()] { serve(seen, index); });
      }
    } catch (const std::exception&) {
      size.store(static_cast<uint32_t>(threads.size() + 1), std::memory_order_relaxed);
    }
  }

 private:
  void announce(Job* next, bool stop) {
    job.store(next);
    stopping.store(stop);
    ++round;
    if (sleeping.load() == 0) return;
    const std::lock_guard<std::mutex> lock(mutex);
    wake.notify_all();
  }
};

struct ThreadPool::AtExit {
  ThreadPool& pool;
  ~AtExit() {
#if !defined(_WIN32)  // There the loader's lock is held, or the threads are gone already.
    pool.close();
#endif
  }
};

ThreadPool& ThreadPool::shared() {
  static ThreadPool& pool = *new ThreadPool(0);
  static const AtExit at_exit{pool};
  return pool;
}

ThreadPool::ThreadPool(uint32_t num_threads) : state_(nullptr) {
  static const bool watches = (os::on_fork([] { ++forks; }), true);
  static_cast<void>(watches);
  state_ = new State(std::min(num_threads, kMaxThreads));
}

ThreadPool::~ThreadPool() {
  State* own = state_.load(std::memory_order_relaxed);
  if (own->generation != forks.load(std::memory_order_relaxed)) return;
  close();
  delete own;
}

/// The state of this process. That of the process before a fork is left as it is: its locks may be
/// held, and its threads are not here.
ThreadPool::State& ThreadPool::state() const {
  State* found = state_.load(std::memory_order_acquire);
  if (found->generation == forks.load(std::memory_order_relaxed)) return *found;
  auto* fresh = new State(found->size.load(std::memory_order_relaxed));
  if (state_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *found;
}

/// Ends the threads for good, after the `parallel_for` that has them.
void ThreadPool::close() {
  if (is_inside) return;
  State& own = state();
  const std::lock_guard<std::mutex> users(own.users);
  own.is_closed = true;
  own.fit();
}

uint32_t ThreadPool::num_threads() const { return is_inside ? 1 : state().limit(); }

uint32_t ThreadPool::thread() const { return own_index; }

void ThreadPool::resize(uint32_t num_threads) {
  State& own = state();
  own.size.store(std::min(num_threads, kMaxThreads), std::memory_order_relaxed);
  if (is_inside) return;
  const std::unique_lock<std::mutex> users(own.users, std::try_to_lock);
  if (users.owns_lock() && !own.threads.empty()) own.fit();
}

void ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, Body body, void* user) {
  if (end <= begin) return;
  const uint64_t count = count_items(begin, end);
  const auto smallest = static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  State& own = state();
  std::unique_lock<std::mutex> users(own.users, std::defer_lock);
  const bool is_alone = is_inside || own.limit() <= 1 || count <= smallest || !users.try_lock();
  if (is_alone) {
    body(user, begin, end);
    return;
  }
  own.fit();
  const uint64_t pieces = (own.threads.size() + uint64_t{1}) * 4;
  const uint64_t chunk = std::max(smallest, divide(count, pieces));
  if (own.threads.empty()) return body(user, begin, end);
  Job job{
      body, user, begin, end, chunk, divide(count, chunk), own.lanes.get(), own.threads.size() + 1};
  job.deal();
  own.run(job);
}

}  // namespace etx
