// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_GIL_H_
#define ETX_NATIVE_PYTHON_GIL_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>
#include <utility>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace etx {
namespace python {

/// Calls what may take the GIL. While the interpreter ends, Python before 3.14 ends other threads
/// that take it with pthread_exit, which would run the destructors of all callers without the GIL:
/// the thread waits here for the end of the process instead.
template <typename Function>
auto with_gil(const Function& function) {
#ifdef __GLIBCXX__
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return function();
#endif
}

/// Holds the GIL while it lives.
class GilAcquired {
 public:
  GilAcquired() : state_(with_gil(PyGILState_Ensure)) {}
  ~GilAcquired() { PyGILState_Release(state_); }
  GilAcquired(const GilAcquired&) = delete;
  GilAcquired& operator=(const GilAcquired&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Gives the GIL up while it lives.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    with_gil([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// Calls a Python object.
template <typename... Arguments>
nanobind::object call_python(nanobind::handle object, Arguments&&... arguments) {
  return with_gil([&] { return object(std::forward<Arguments>(arguments)...); });
}

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_GIL_H_
