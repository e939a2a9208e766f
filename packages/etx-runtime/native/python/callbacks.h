// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_CALLBACKS_H_
#define ETX_NATIVE_PYTHON_CALLBACKS_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "convert.h"

namespace etx {
namespace python {

/// Says for this thread which method executes, so that the arrays that kernels get keep it alive.
/// Made with the GIL; scopes nest.
class CallScope {
 public:
  CallScope(nanobind::handle owner, LoadedMethod* method);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  nanobind::handle owner;
  LoadedMethod* method;

 private:
  CallScope* outer_;
};

/// Around the load of a method: while there is one, what `unregister` takes away stays alive.
class LoadScope {
 public:
  LoadScope();
  ~LoadScope();
  LoadScope(const LoadScope&) = delete;
  LoadScope& operator=(const LoadScope&) = delete;
  /// All that is registered and was meanwhile.
  std::vector<nanobind::object> callbacks() const;
  /// What the `init` of Python backends returned in this thread; who destroys their delegates keeps
  /// it until then.
  void keep_handle(nanobind::object handle) { handles_.push_back(std::move(handle)); }
  std::vector<nanobind::object> take_handles() { return std::move(handles_); }

 private:
  LoadScope* outer_;
  std::vector<nanobind::object> handles_;
};

/// The exception of the kernel or backend that failed in this thread, or invalid; takes it away.
/// One that is not an `Exception` (KeyboardInterrupt) is thrown on instead.
nanobind::object take_python_exception();
/// Drops it: another one is raised.
void forget_python_exception();

/// `ValueError: text`.
std::string describe_exception(nanobind::handle exception);

/// Puts `function` before all kernels of that name, for methods that are loaded from now on.
void register_kernel(const std::string& name, nanobind::object function);
/// Puts `backend` (init, execute, perhaps destroy and is_available) before all of that name.
void register_backend(const std::string& name, nanobind::object backend);
/// Takes the registered ones of that name away; methods that use them keep them. False if none is.
bool unregister(const std::string& name);

/// Records an event of the Python backend that executes on this thread; false where nobody does.
bool trace_event(const std::variant<int32_t, std::string>& id, uint64_t start, uint64_t end,
                 const nanobind::bytes& metadata);

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_CALLBACKS_H_
