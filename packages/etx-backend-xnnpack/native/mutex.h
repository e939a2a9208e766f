// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_MUTEX_H_
#define ETX_XNNPACK_MUTEX_H_

#include <pthread.h>

namespace etx::xnnpack {

/// A std::mutex that needs nothing of the C++ library: its lock() throws.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Holds a mutex to the end of the block.
class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_MUTEX_H_
