// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ELEMENT_H_
#define ETX_PORTABLE_ELEMENT_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dispatch.h"

namespace etx::portable {

/// An element of a tensor; of bool, whose memory may hold any byte, true for all but 0.
template <typename T>
T load_element(const T* at) {
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte;
    std::memcpy(&byte, at, sizeof(byte));
    return byte != 0;
  } else {
    return *at;
  }
}

/// The sum: integers wrap, of bools it is `or`.
template <typename T>
T add_elements(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(static_cast<Compute<T>>(a) + static_cast<Compute<T>>(b));
  }
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ELEMENT_H_
