// SPDX-License-Identifier: BSD-3-Clause
#include "log_sink.h"

#include <mutex>

#include <etx/hosted/log.h>

#include "convert.h"
#include "gil.h"

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

std::mutex mutex;
/// Never destroyed: messages may come until the process ends.
nb::object& sink = *new nb::object();

const char* name_of(etx_log_level level) {
  switch (level) {
    case ETX_LOG_DEBUG: return "debug";
    case ETX_LOG_INFO: return "info";
    case ETX_LOG_ERROR: return "error";
    default: return "fatal";
  }
}

void send(void*, etx_log_level level, const char* message) {
  if (!nb::is_alive()) return;
  const GilAcquired acquired;
  nb::error_scope raised;
  nb::object current;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    current = sink;
  }
  if (!current.is_valid()) return;
  try {
    call_python(current, name_of(level), clean(message));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the sink of etx_runtime's log");
  }
}

}  // namespace

void set_sink(nb::object given) {
  const bool is_given = !given.is_none();
  if (is_given && PyCallable_Check(given.ptr()) == 0) {
    throw nb::type_error("expected None or a function of a level and a message");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    std::swap(sink, given);
  }
  Error error;
  {
    const GilReleased released;
    error = set_log_sink(is_given ? send : nullptr, nullptr);
  }
  if (error == Error::Ok) return;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    std::swap(sink, given);
  }
  raise("RuntimeFailure", error, "the sink cannot be changed by itself");
}

}  // namespace python
}  // namespace etx
