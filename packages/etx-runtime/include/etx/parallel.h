// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PARALLEL_H_
#define ETX_PARALLEL_H_

#include <cstdint>

namespace etx {

/// Threads for kernels and delegates. The core has none of its own; hosted programs pass a
/// ThreadPool, and without any everything runs on the caller's thread.
///
/// Several methods may share one, so its functions are called from several threads at once and from
/// within a body.
class Parallel {
 public:
  using Body = void (*)(void* user, int64_t begin, int64_t end);

  /// Threads that `parallel_for` may use, the caller's included; at least 1.
  virtual uint32_t num_threads() const = 0;

  /// Calls `body` over disjoint ranges that cover [begin, end), each at least `grain` long unless
  /// it is the last; returns when all have returned, and what they wrote is then seen. Which thread
  /// runs which range is not known.
  virtual void parallel_for(int64_t begin, int64_t end, int64_t grain, Body body, void* user) = 0;

  /// Which of the threads calls, below `num_threads`; 0 outside of a body and for the caller's own.
  virtual uint32_t thread() const { return 0; }

 protected:
  ~Parallel() = default;
};

}  // namespace etx

#endif  // ETX_PARALLEL_H_
