// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_ROW_POINTERS_H_
#define ETX_PORTABLE_LEVEL_ROW_POINTERS_H_

#include <cstdint>

namespace etx::portable {
namespace {

/// Rows of A in groups of three behind one pointer each: every address is then a pointer plus 0, 1
/// or 2 times the stride, and all of them fit the registers.
template <typename T, int M>
struct RowPointers {
  const T* group[(M + 2) / 3];
  int64_t stride;
  RowPointers(const T* a, int64_t a_stride) : stride(a_stride) {
    for (int g = 0; g < (M + 2) / 3; ++g) group[g] = a + 3 * g * a_stride;
  }
  void advance(int64_t count) {
    for (const T*& pointer : group) pointer += count;
  }
  const T* address(int row, int64_t k) const { return group[row / 3] + (row % 3) * stride + k; }
  T at(int row, int64_t k) const { return *address(row, k); }
};

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_ROW_POINTERS_H_
