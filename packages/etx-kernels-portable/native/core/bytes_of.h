// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_BYTES_OF_H_
#define ETX_PORTABLE_BYTES_OF_H_

#include <cstddef>
#include <cstdint>

namespace etx::portable {

/// An element of `n` bytes whose meaning does not matter.
template <size_t n>
struct BytesOf {
  unsigned char bytes[n];
};

/// The same as an unsigned number where there is one: compilers keep these in vectors.
template <size_t n>
struct WordOf {
  using Type = BytesOf<n>;
};
template <>
struct WordOf<1> {
  using Type = uint8_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint64_t;
};

/// Calls `f(BytesOf<size>{})`; `size` is the size of an element: 1, 2, 4, 8 or 16.
template <typename F>
void by_size(size_t size, const F& f) {
  switch (size) {
    case 1: return f(BytesOf<1>{});
    case 2: return f(BytesOf<2>{});
    case 4: return f(BytesOf<4>{});
    case 8: return f(BytesOf<8>{});
    default: return f(BytesOf<16>{});
  }
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_BYTES_OF_H_
