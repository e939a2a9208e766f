// SPDX-License-Identifier: BSD-3-Clause
#include "ops/index/sort_rows.h"

#include <algorithm>
#include <cstring>

#include "core/bytes_of.h"
#include "core/dispatch.h"
#include "core/element.h"
#include "core/min_max.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "isa/isa.h"

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

/// The same as std::partial_sort of items in the order of their indices: of equal keys, a later one
/// is never better.
void sort_few(Item* items, int64_t size, int64_t count) {
  Item* const end = items + count;
  std::make_heap(items, end);
  for (int64_t i = count; i < size; ++i) {
    if (items[i].key >= items[0].key) continue;
    int64_t at = 0;
    for (int64_t child = 1; child < count; child = 2 * at + 1) {
      if (child + 1 < count && items[child] < items[child + 1]) ++child;
      if (items[child] < items[i]) break;
      items[at] = items[child];
      at = child;
    }
    items[at] = items[i];
  }
  std::sort_heap(items, end);
}

/// By the bytes of their distances from the smallest key, the lowest first: equal ones keep their
/// order. Returns where they are: `items` or `spare`.
Item* sort_by_bytes(Item* items, Item* spare, int64_t count) {
  uint64_t least = UINT64_MAX, used = 0;
  for (int64_t i = 0; i < count; ++i) least = min(items[i].key, least);
  for (int64_t i = 0; i < count; ++i) used |= items[i].key - least;
  for (int shift = 0; shift < 64; shift += 8) {
    const auto byte = [least, shift](const Item& item) {
      return (item.key - least) >> shift & 255u;
    };
    if ((used >> shift & 255u) == 0) continue;
    int64_t place[256] = {};
    for (int64_t i = 0; i < count; ++i) ++place[byte(items[i])];
    int64_t next = 0;
    for (int64_t& first : place) {
      const int64_t own = first;
      first = next;
      next += own;
    }
    for (int64_t i = 0; i < count; ++i) spare[place[byte(items[i])]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

/// The first `count` of the items, in order when `sorted`. There is a `spare` place for each where
/// all of many are asked for.
Item* select(Item* items, Item* spare, int64_t size, int64_t count, bool sorted) {
  if (spare != nullptr) return sort_by_bytes(items, spare, size);
  if (count > 0 && count * 8 <= size) {
    sort_few(items, size, count);
  } else {
    if (count < size) std::nth_element(items, items + count, items + size);
    if (sorted) sort_items(items, count);
  }
  return items;
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
  constexpr int64_t kMany = 96;
  const bool by_bytes = !kIsSmall && sorted && count == size && size >= kMany;
  ETX_ASSIGN(Item* const items, scratch<Item>(context, by_bytes ? 2 * size : size,
                                              "no temporary memory to sort a row of self"));
  const int64_t step = stride_of(self, axis), value_step = stride_of(values, axis);
  const int64_t index_step = stride_of(indices, axis);
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
    read_row(self.const_data_ptr(), from, step, size, descending, items);
    const Item* const found = select(items, by_bytes ? items + size : nullptr, size, count, sorted);
    char* const value = values.mutable_data_ptr<char>() + to * width;
    const char* const row_of_self = self.const_data_ptr<char>() + from * width;
    int64_t* const index_of = indices.mutable_data_ptr<int64_t>() + to_index;
    by_size(self.element_size(), [&](auto bytes) {
      constexpr size_t kSize = sizeof(bytes);
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(value + i * value_step * width, row_of_self + found[i].index * step * width,
                    kSize);
        index_of[i * index_step] = found[i].index;
      }
    });
    for (ssize_t d = self.dim() - 1; d >= 0; --d) {
      if (d == axis) continue;
      if (++index[d] < self.size(d)) break;
      index[d] = 0;
    }
  }
  return Error::Ok;
}

}  // namespace etx::portable
