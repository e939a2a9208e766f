// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_RESULT_H_
#define ETX_RESULT_H_

#include <new>
#include <type_traits>
#include <utility>

#include <etx/error.h>

namespace etx {

/// A `T`, or the `Error` that kept it from being made. Move-only use; `get` without `ok` is
/// undefined.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(Error error) : error_(error == Error::Ok ? Error::Internal : error) {}
  Result(T&& value) : error_(Error::Ok) {
    ::new (static_cast<void*>(&storage_)) T(std::move(value));
  }
  Result(const T& value) : error_(Error::Ok) { ::new (static_cast<void*>(&storage_)) T(value); }
  Result(Result&& other) noexcept : error_(other.error_) {
    if (ok()) ::new (static_cast<void*>(&storage_)) T(std::move(other.get()));
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (ok()) get().~T();
  }

  [[nodiscard]] bool ok() const { return error_ == Error::Ok; }
  Error error() const { return error_; }
  T& get() { return *std::launder(reinterpret_cast<T*>(&storage_)); }
  const T& get() const { return *std::launder(reinterpret_cast<const T*>(&storage_)); }
  T& operator*() { return get(); }
  const T& operator*() const { return get(); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &get(); }

 private:
  alignas(T) unsigned char storage_[sizeof(T)];
  Error error_;
};

}  // namespace etx

#define ETX_CONCAT_(a, b) a##b
#define ETX_CONCAT(a, b) ETX_CONCAT_(a, b)
#define ETX_ASSIGN_(result, declaration, expr) \
  auto result = (expr);                        \
  if (!result.ok()) return result.error();     \
  declaration = std::move(result.get())

/// `ETX_ASSIGN(auto x, make())`: declares x from a Result, or returns its error.
#define ETX_ASSIGN(declaration, expr) \
  ETX_ASSIGN_(ETX_CONCAT(etx_result_, __LINE__), declaration, expr)

#endif  // ETX_RESULT_H_
