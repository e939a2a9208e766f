// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_SPAN_H_
#define ETX_SPAN_H_

#include <cstddef>
#include <type_traits>

namespace etx {

/// A view of `size()` consecutive objects that somebody else owns. `Span<const T>` is the
/// read-only view; there is no second view type.
template <typename T>
class Span {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), size_(N) {}
  /// `Span<T>` converts to `Span<const T>`.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr Span(Span<U> other) : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  /// No bounds check: `index` must be below size().
  constexpr T& operator[](size_t index) const { return data_[index]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  /// The part from `begin`, `count` long; both must lie inside.
  constexpr Span subspan(size_t begin, size_t count) const { return {data_ + begin, count}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T, typename U>
constexpr bool equal(Span<T> a, Span<U> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return false;
  }
  return true;
}

}  // namespace etx

#endif  // ETX_SPAN_H_
