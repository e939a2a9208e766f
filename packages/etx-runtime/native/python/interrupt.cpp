// SPDX-License-Identifier: BSD-3-Clause
#include "interrupt.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "callbacks.h"

namespace nb = nanobind;

namespace etx {
namespace python {

#ifdef _WIN32

void find_main_thread() {}
Interruptible::Interruptible(Method& method) : method_(&method) {}
Interruptible::~Interruptible() = default;
void Interruptible::leave() {}
void Interruptible::finish() {}

#else

namespace {

using Clock = std::chrono::steady_clock;
using Handler = void (*)(int);

/// Another handler that a program sets is noticed by the executions that begin so much later.
constexpr std::chrono::milliseconds kRecheck(10);

unsigned long main_thread = 0;
Clock::time_point last_check{};

std::atomic<Method*> running{nullptr};
std::atomic<int> num_handling{0};
std::atomic<bool> was_signalled{false};
std::atomic<Handler> python_handler{nullptr};
static_assert(std::atomic<Method*>::is_always_lock_free, "used by a signal handler");

void on_interrupt(int signal) {
  num_handling.fetch_add(1);
  const Handler handler = python_handler.load();
  if (handler != nullptr) handler(signal);
  Method* const method = running.load();
  if (method != nullptr) {
    was_signalled.store(true);
    method->cancel();
  }
  num_handling.fetch_sub(1);
}

/// Comes before Python's handler in C, unless that calls another one than `default_int_handler`.
void install() {
  struct sigaction current;
  if (sigaction(SIGINT, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0) return;
  if (current.sa_handler == on_interrupt) return;
  const nb::module_ signal = nb::module_::import_("signal");
  const nb::object handler = signal.attr("getsignal")(SIGINT);
  if (!handler.is(signal.attr("default_int_handler"))) return;
  python_handler.store(current.sa_handler);
  current.sa_handler = on_interrupt;
  sigaction(SIGINT, &current, nullptr);
}

}  // namespace

void find_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(main.attr("ident"));
}

Interruptible::Interruptible(Method& method) : method_(&method) {
  if (PyThread_get_thread_ident() != main_thread) return;
  const Clock::time_point now = Clock::now();
  if (now - last_check > kRecheck) {
    install();
    last_check = now;
  }
  outer_ = running.exchange(method_);
  is_active_ = true;
}

Interruptible::~Interruptible() { leave(); }

void Interruptible::leave() {
  if (!is_active_) return;
  is_active_ = false;
  running.store(outer_);
  while (num_handling.load() != 0) {
  }
  if (!was_signalled.exchange(false)) return;
  is_signalled_ = true;
  method_->clear_cancel();
}

void Interruptible::finish() {
  leave();
  if (!is_signalled_ || PyErr_CheckSignals() == 0) return;
  forget_python_exception();
  throw nb::python_error();
}

#endif

}  // namespace python
}  // namespace etx
