// SPDX-License-Identifier: BSD-3-Clause
#include "forked.h"

#include <ATen/Parallel.h>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace etx::aten {
namespace {

thread_local bool is_forked = false;

}  // namespace

void watch_forks() {
#if !defined(_WIN32)
  static const int status = pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  static_cast<void>(status);
#endif
}

void leave_pool_of_parent() {
  if (!is_forked) return;
  is_forked = false;
  at::set_num_threads(1);
}

}  // namespace etx::aten
