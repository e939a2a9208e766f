// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_THREAD_POOL_H_
#define ETX_HOSTED_THREAD_POOL_H_

#include <atomic>

#include <etx/parallel.h>

namespace etx {

/// Cores that this process may keep busy, at least 1: those of its CPU affinity, or fewer where its
/// control groups (Linux, both versions) have a quota of time, rounded up. `root` is put before the
/// system's paths of the groups.
uint32_t usable_cores(const char* root = "");

/// Threads for kernels and delegates; they start when first needed and sleep while there is nothing
/// to do.
///
/// All functions may be called from any thread at any time, also within a body. One `parallel_for`
/// has the threads; another that comes meanwhile, and one within a body, runs its body on the
/// calling thread. A child of `fork` starts threads of its own; `fork` within a body is the
/// one thing that is not allowed.
class ThreadPool final : public Parallel {
 public:
  static constexpr uint32_t kMaxThreads = 1024;

  /// The pool of the process, which hosted methods use. Its threads end when the process does or
  /// the library is unloaded; what executes after that runs on its own thread.
  static ThreadPool& shared();

  /// See `resize`.
  explicit ThreadPool(uint32_t num_threads);
  /// Nobody may use the pool any more.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Within a body, 1.
  uint32_t num_threads() const override;
  /// `body` must not throw.
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body body, void* user) override;
  uint32_t thread() const override;

  /// Sets the number of threads, the caller's included, from the next `parallel_for` on; at most
  /// kMaxThreads. 0 stands for the environment's ETX_NUM_THREADS, or `usable_cores()` without it.
  /// Where the system refuses threads, there are fewer.
  void resize(uint32_t num_threads);

 private:
  struct State;
  struct AtExit;
  State& state() const;
  void close();

  mutable std::atomic<State*> state_;
};

}  // namespace etx

#endif  // ETX_HOSTED_THREAD_POOL_H_
