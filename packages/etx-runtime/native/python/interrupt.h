// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_INTERRUPT_H_
#define ETX_NATIVE_PYTHON_INTERRUPT_H_

#include <etx/method.h>

namespace etx {
namespace python {

/// While it lives, SIGINT (Ctrl-C) cancels the executions of `method`, if this is Python's main
/// thread and its handler is Python's own, which raises KeyboardInterrupt.
class Interruptible {
 public:
  /// Needs the GIL.
  explicit Interruptible(Method& method);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// After the execution, with the GIL: throws what Python's handler of a signal raised.
  void finish();

 private:
  void leave();

  Method* method_;
  Method* outer_ = nullptr;
  bool is_active_ = false;
  bool is_signalled_ = false;
};

/// Remembers which thread is Python's main one.
void find_main_thread();

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_INTERRUPT_H_
