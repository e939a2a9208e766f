// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ROUNDED_H_
#define ETX_PORTABLE_ROUNDED_H_

#include <cmath>
#include <type_traits>

#include "core/dispatch.h"

namespace etx::portable {

/// A float that is rounded to `Step`, float16 or bfloat16, after each operation, as ATen's vectors
/// of these do.
template <typename Step>
struct Rounded {
  float value = 0;

  Rounded() = default;
  Rounded(float x) : value(Step(x)) {}
  explicit operator float() const { return value; }

  friend Rounded operator+(Rounded a, Rounded b) { return Rounded(a.value + b.value); }
  friend Rounded operator-(Rounded a, Rounded b) { return Rounded(a.value - b.value); }
  friend Rounded operator*(Rounded a, Rounded b) { return Rounded(a.value * b.value); }
  friend Rounded operator/(Rounded a, Rounded b) { return Rounded(a.value / b.value); }
  friend bool operator<(Rounded a, Rounded b) { return a.value < b.value; }
};

template <typename T>
struct IsRounded : std::false_type {};
template <typename Step>
struct IsRounded<Rounded<Step>> : std::true_type {};

/// The type in which a `T` is stored: float for Rounded.
template <typename T>
using Stored = std::conditional_t<IsRounded<T>::value, float, T>;

template <typename T>
Stored<T> stored(T x) {
  return static_cast<Stored<T>>(x);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ROUNDED_H_
