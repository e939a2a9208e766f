// SPDX-License-Identifier: BSD-3-Clause
#include "strided_copy.h"

#include <cstring>

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
    const ptrdiff_t to_step = to_strides[dim] * step;
    const ptrdiff_t from_step = static_cast<ptrdiff_t>(from_strides[dim]) * step;
    if (dim + 1 == rank && to_step == step && from_step == step) {
      std::memcpy(to, from, element * static_cast<size_t>(sizes[dim]));
      return;
    }
    for (int32_t i = 0; i < sizes[dim]; ++i) {
      run(to + i * to_step, from + i * from_step, dim + 1);
    }
  }
};

}  // namespace

void copy_strided(void* to, const int32_t* to_strides, const void* from,
                  const int64_t* from_strides, const int32_t* sizes, size_t rank, size_t element) {
  const Copy copy{to_strides, from_strides, sizes, rank, element};
  copy.run(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), 0);
}

}  // namespace etx
