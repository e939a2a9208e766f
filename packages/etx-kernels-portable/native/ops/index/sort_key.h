// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SORT_KEY_H_
#define ETX_PORTABLE_SORT_KEY_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace etx::portable {

/// An element as an unsigned number of the same order, and where it was. Equal elements keep their
/// order, so that results do not depend on the algorithm.
struct Item {
  uint64_t key;
  int64_t index = 0;
  bool operator<(const Item& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

/// Keys are ordered as the numbers are, NaN above all.
template <typename T>
uint64_t key_of(T v) {
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return v;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(v)) ^ (uint64_t{1} << 63);
  } else if constexpr (sizeof(T) == 8) {
    const double d = v + 0.0;
    if (d != d) return UINT64_MAX;
    uint64_t bits;
    std::memcpy(&bits, &d, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t{1} << 63);
  } else {
    const float f = static_cast<float>(v) + 0.0f;
    if (f != f) return UINT32_MAX;
    uint32_t bits;
    std::memcpy(&bits, &f, sizeof(bits));
    return bits >> 31 ? ~bits : bits | (uint32_t{1} << 31);
  }
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SORT_KEY_H_
