// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CALLBACK_H_
#define ETX_PORTABLE_CALLBACK_H_

#include <type_traits>

namespace etx::portable {

/// A view of a function object that returns nothing, for parameters: what takes one is compiled
/// once, not once for each lambda. The object must outlive it.
template <typename... Args>
class Callback {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<F, Callback>>>
  Callback(const F& f)
      : object_(&f),
        call_([](const void* object, Args... args) { (*static_cast<const F*>(object))(args...); }) {
  }

  void operator()(Args... args) const { call_(object_, args...); }

 private:
  const void* object_;
  void (*call_)(const void*, Args...);
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CALLBACK_H_
