// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_THREAD_POOL_H_
#define ETX_HOSTED_THREAD_POOL_H_

#include <memory>

#include <etx/parallel.h>

namespace etx {

/// Threads that sleep while there is nothing to do; one method uses them at a time, another that
/// comes meanwhile runs on its own thread alone.
class ThreadPool final : public Parallel {
 public:
  /// The pool that a process shares; sized by the usable cores until it is resized.
  static ThreadPool& shared();

  explicit ThreadPool(uint32_t num_threads);
  ~ThreadPool();

  uint32_t num_threads() const override;
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body body, void* user) override;
  /// Waits for a running `parallel_for`. 0 means the usable cores.
  void resize(uint32_t num_threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace etx

#endif  // ETX_HOSTED_THREAD_POOL_H_
