// SPDX-License-Identifier: BSD-3-Clause
#include "ops/index/sort_rows.h"

#include <algorithm>
#include <cstring>

#include "core/dispatch.h"
#include "core/element.h"
#include "core/scratch.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

template <typename T>
void read_keys(const void* data, int64_t offset, int64_t stride, int64_t count, bool descending,
               Item* items) {
  const T* from = static_cast<const T*>(data) + offset;
  const uint64_t flip = descending ? UINT64_MAX : 0;
  for (int64_t i = 0; i < count; ++i) {
    items[i] = {key_of(load_element(from + i * stride)) ^ flip, i};
  }
}

using ReadKeys = void (*)(const void*, int64_t, int64_t, int64_t, bool, Item*);

/// The first `count` of the items, in order when `sorted`.
void select(Item* items, int64_t size, int64_t count, bool sorted) {
  if (count * 64 <= size) {
    std::partial_sort(items, items + count, items + size);
  } else {
    if (count < size) std::nth_element(items, items + count, items + size);
    if (sorted) sort_items(items, count);
  }
}

}  // namespace

void sort_items(Item* items, int64_t count) { std::sort(items, items + count); }

Error sort_rows(Context& context, const Tensor& self, ssize_t axis, int64_t count, bool descending,
                bool sorted, const Tensor& values, const Tensor& indices) {
  ETX_CHECK(context, indices.scalar_type() == ScalarType::Long, InvalidArgument,
            "indices must be int64");
  ETX_CHECK(context, indices.impl() != self.impl() && indices.impl() != values.impl(),
            InvalidArgument, "out must not be an input");
  ETX_TRY(check_output(context, self, values));
  Shape shape(self);
  if (self.dim() > 0) shape[static_cast<size_t>(axis)] = count;
  ReadKeys read_row = nullptr;
  ETX_TRY(dispatch(context, RealBool{}, self.scalar_type(), [&](auto tag) {
    read_row = read_keys<typename decltype(tag)::type>;
    return Error::Ok;
  }));
  ETX_TRY(resize_out(context, values, shape));
  ETX_TRY(resize_out(context, indices, shape));
  if (values.numel() == 0) return Error::Ok;
  const int64_t size = size_of(self, axis);
  ETX_ASSIGN(Item* const items,
             scratch<Item>(context, size, "no temporary memory to sort a row of self"));
  const int64_t width = static_cast<int64_t>(self.element_size());
  int64_t index[kMaxRank] = {};
  const int64_t rows = self.numel() / size;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = 0;
    int64_t to = 0;
    int64_t to_index = 0;
    for (ssize_t d = 0; d < self.dim(); ++d) {
      from += index[d] * self.stride(d);
      to += index[d] * values.stride(d);
      to_index += index[d] * indices.stride(d);
    }
    read_row(self.const_data_ptr(), from, stride_of(self, axis), size, descending, items);
    select(items, size, count, sorted);
    for (int64_t i = 0; i < count; ++i) {
      std::memmove(mutable_element_ptr(values, to + i * stride_of(values, axis)),
                   element_ptr(self, from + items[i].index * stride_of(self, axis)),
                   static_cast<size_t>(width));
      indices.mutable_data_ptr<int64_t>()[to_index + i * stride_of(indices, axis)] = items[i].index;
    }
    for (ssize_t d = self.dim() - 1; d >= 0; --d) {
      if (d == axis) continue;
      if (++index[d] < self.size(d)) break;
      index[d] = 0;
    }
  }
  return Error::Ok;
}

}  // namespace etx::portable
