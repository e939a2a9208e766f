// SPDX-License-Identifier: BSD-3-Clause
#include "strided_copy.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace etx {
namespace {

struct Copy {
  const int32_t* to_strides;
  const int64_t* from_strides;
  const int32_t* sizes;
  size_t rank;
  size_t element;

  void run(uint8_t* to, const uint8_t* from, size_t dim) const {
    if (dim == rank) {
      std::memcpy(to, from, element);
      return;
    }
    const auto step = static_cast<ptrdiff_t>(element);
    // The stride of a size of 1 may be any number.
    const bool moves = sizes[dim] != 1;
    const ptrdiff_t to_step = moves ? to_strides[dim] * step : step;
    const ptrdiff_t from_step = moves ? static_cast<ptrdiff_t>(from_strides[dim]) * step : step;
    if (dim + 1 == rank && to_step == step && from_step == step) {
      std::memcpy(to, from, element * static_cast<size_t>(sizes[dim]));
      return;
    }
    for (int32_t i = 0; i < sizes[dim]; ++i) {
      run(to + i * to_step, from + i * from_step, dim + 1);
    }
  }
};

/// The first and the last byte of elements that lie with `strides`, of which there is at least one.
template <typename Stride>
std::pair<uintptr_t, uintptr_t> find_ends(const void* data, const Stride* strides,
                                          const int32_t* sizes, size_t rank, size_t element) {
  auto first = reinterpret_cast<uintptr_t>(data);
  auto last = first + element - 1;
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] == 1) continue;
    const auto reach = static_cast<ptrdiff_t>(strides[i]) * static_cast<ptrdiff_t>(element) *
                       static_cast<ptrdiff_t>(sizes[i] - 1);
    (reach < 0 ? first : last) += static_cast<uintptr_t>(reach);
  }
  return {first, last};
}

}  // namespace

void copy_strided(void* to, const int32_t* to_strides, const void* from,
                  const int64_t* from_strides, const int32_t* sizes, size_t rank, size_t element) {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= static_cast<size_t>(sizes[i]);
  if (count == 0) return;
  const auto target = find_ends(to, to_strides, sizes, rank, element);
  const auto source = find_ends(from, from_strides, sizes, rank, element);
  if (source.first > target.second || target.first > source.second) {
    const Copy copy{to_strides, from_strides, sizes, rank, element};
    copy.run(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), 0);
    return;
  }
  std::vector<uint8_t> bytes(count * element);
  std::vector<int32_t> row_major(rank);
  int32_t step = 1;
  for (size_t i = rank; i-- > 0; step *= sizes[i]) row_major[i] = step;
  const Copy out{row_major.data(), from_strides, sizes, rank, element};
  out.run(bytes.data(), static_cast<const uint8_t*>(from), 0);
  const std::vector<int64_t> packed(row_major.begin(), row_major.end());
  const Copy back{to_strides, packed.data(), sizes, rank, element};
  back.run(static_cast<uint8_t*>(to), bytes.data(), 0);
}

}  // namespace etx
