// SPDX-License-Identifier: BSD-3-Clause
#include <etx/hosted/log.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "../platform/os.h"

namespace etx {
namespace {

struct Sink {
  LogSink function;
  void* user;
};

std::atomic<int> minimum{ETX_LOG_ERROR};
std::shared_mutex mutex;
Sink sink{nullptr, nullptr};
thread_local int depth = 0;

int rank(int level) {
  switch (level) {
    case ETX_LOG_DEBUG: return 0;
    case ETX_LOG_INFO: return 1;
    case ETX_LOG_ERROR: return 2;
    default: return 3;
  }
}

/// In the child of a fork a lock that another thread held stays locked for ever.
void renew_lock() {
  ::new (&mutex) std::shared_mutex();
  if (depth != 0) mutex.lock_shared();
}

void watch_forks() {
  static const bool watches = (os::on_fork(renew_lock), true);
  static_cast<void>(watches);
}

void send(etx_log_level level, const char* message) {
  watch_forks();
  std::shared_lock<std::shared_mutex> lock(mutex, std::defer_lock);
  if (depth == 0) lock.lock();
  const Sink current = sink;
  if (current.function == nullptr) {
    std::fprintf(stderr, "etx %c: %s\n", level, message);
    return;
  }
  ++depth;
  current.function(current.user, level, message);
  --depth;
}

}  // namespace

bool is_logged(etx_log_level level) { return rank(level) >= rank(minimum); }

void set_log_level(etx_log_level level) { minimum = level; }

etx_log_level log_level() { return static_cast<etx_log_level>(minimum.load()); }

Error set_log_sink(LogSink function, void* user) {
  if (depth != 0) return Error::InvalidState;
  watch_forks();
  const std::unique_lock<std::shared_mutex> lock(mutex);
  sink = {function, user};
  return Error::Ok;
}

void log(etx_log_level level, const std::string& message) {
  if (is_logged(level)) send(level, message.c_str());
}

}  // namespace etx

extern "C" void etx_pal_log(enum etx_log_level level, const char* message, const char* name) {
  if (name == nullptr) {
    if (etx::is_logged(level)) etx::send(level, message);
  } else {
    etx::log(level, std::string(name) + ": " + message);
  }
}
