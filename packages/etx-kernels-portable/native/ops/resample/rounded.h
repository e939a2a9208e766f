// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ROUNDED_H_
#define ETX_PORTABLE_ROUNDED_H_

#include <type_traits>

#include "core/dispatch.h"

namespace etx::portable {

/// A float that is rounded to float16 or bfloat16 after each operation, as ATen's vectors of these
/// do. A result has the kind of the left operand.
struct Rounded {
  float value;
  ScalarType kind;

  explicit operator float() const { return value; }

  friend Rounded operator+(Rounded a, Rounded b) {
    return {round(a.value + b.value, a.kind), a.kind};
  }
  friend Rounded operator-(Rounded a, Rounded b) {
    return {round(a.value - b.value, a.kind), a.kind};
  }
  friend Rounded operator*(Rounded a, Rounded b) {
    return {round(a.value * b.value, a.kind), a.kind};
  }
  friend Rounded operator/(Rounded a, Rounded b) {
    return {round(a.value / b.value, a.kind), a.kind};
  }
  friend bool operator<(Rounded a, Rounded b) { return a.value < b.value; }

  [[gnu::noinline]] static float round(float x, ScalarType kind) {
    return kind == ScalarType::Half ? float{Half(x)} : float{BFloat16(x)};
  }
};

/// The type in which a `T` is stored: float for Rounded.
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, Rounded>, float, T>;

template <typename T>
Stored<T> stored(T x) {
  return static_cast<Stored<T>>(x);
}

/// `x`, which needs no rounding, of the kind of `like`.
template <typename T>
T exact(T like, double x) {
  if constexpr (std::is_same_v<T, Rounded>) {
    return {static_cast<float>(x), like.kind};
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ROUNDED_H_
