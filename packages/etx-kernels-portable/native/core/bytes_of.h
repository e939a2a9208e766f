// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_BYTES_OF_H_
#define ETX_PORTABLE_BYTES_OF_H_

#include <cstddef>

namespace etx::portable {

/// An element of `n` bytes whose meaning does not matter.
template <size_t n>
struct BytesOf {
  unsigned char bytes[n];
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
