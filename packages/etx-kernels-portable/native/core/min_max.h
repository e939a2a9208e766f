// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_MIN_MAX_H_
#define ETX_PORTABLE_MIN_MAX_H_

namespace etx::portable {

/// By value; `b` where the two are equal or one is NaN.
template <typename T>
constexpr T min(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
constexpr T max(T a, T b) {
  return a > b ? a : b;
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_MIN_MAX_H_
