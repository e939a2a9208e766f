// SPDX-License-Identifier: BSD-3-Clause
#include "ops/index/gather_rows.h"

#include <cstring>

#include "core/bytes_of.h"
#include "core/min_max.h"
#include "core/scratch.h"

namespace etx::portable {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

template <size_t n>
void copy_entries(char* dst, const char* src, const Entries& to, const Entries& from, int64_t begin,
                  int64_t end) {
  constexpr int64_t kSize = n;
  if (from.table != nullptr && to.table == nullptr && to.step == 1) {
    for (int64_t i = begin; i < end; ++i) {
      std::memmove(dst + i * kSize, src + from.table[i] * kSize, n);
    }
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    std::memmove(dst + to[i] * kSize, src + from[i] * kSize, n);
  }
}

}  // namespace

void GatherRows::add(int64_t size, int64_t dst_stride, int64_t src_stride) {
  if (size == 0) count_ = 0;
  if (size != 1) dims_[rank_++] = {size, dst_stride, src_stride};
}

/// Sorts and merges the loops and returns the iterations of those that remain around the run.
int64_t GatherRows::merge(size_t element_size) {
  for (int i = 1; i < rank_; ++i) {
    const Dim dim = dims_[i];
    int j = i;
    for (; j > 0 && dims_[j - 1].dst < dim.dst; --j) dims_[j] = dims_[j - 1];
    dims_[j] = dim;
  }
  int merged = 0;
  for (int i = 0; i < rank_; ++i) {
    const Dim inner = dims_[i];
    Dim& outer = dims_[merged > 0 ? merged - 1 : 0];
    if (merged > 0 && outer.dst == inner.dst * inner.size && outer.src == inner.src * inner.size) {
      outer = {outer.size * inner.size, inner.dst, inner.src};
    } else {
      dims_[merged++] = inner;
    }
  }
  rank_ = merged;
  if (rank_ > 0 && dims_[rank_ - 1].dst == 1 && dims_[rank_ - 1].src == 1) {
    run_ = dims_[--rank_].size;
  }
  int64_t outer = 1;
  for (int i = 0; i < rank_; ++i) {
    outer *= dims_[i].size;
    dims_[i].dst *= static_cast<int64_t>(element_size);
    dims_[i].src *= static_cast<int64_t>(element_size);
  }
  return outer;
}

void GatherRows::run_part(char* dst, const char* src, size_t element_size, int64_t begin,
                          int64_t end, Combine combine) const {
  const int64_t width = static_cast<int64_t>(element_size);
  const size_t bytes = static_cast<size_t>(run_) * element_size;
  if (combine != nullptr || run_ != 1) {
    for (int64_t i = begin; i < end; ++i) {
      char* const d = dst + dst_[i] * width;
      const char* const s = src + src_[i] * width;
      if (combine != nullptr) {
        combine(d, s, bytes);
      } else {
        std::memmove(d, s, bytes);
      }
    }
    return;
  }
  switch (element_size) {
    case 1: return copy_entries<1>(dst, src, dst_, src_, begin, end);
    case 2: return copy_entries<2>(dst, src, dst_, src_, begin, end);
    case 4: return copy_entries<4>(dst, src, dst_, src_, begin, end);
    case 8: return copy_entries<8>(dst, src, dst_, src_, begin, end);
    default: return copy_entries<16>(dst, src, dst_, src_, begin, end);
  }
}

void GatherRows::run(Context& context, void* dst, const void* src, size_t element_size,
                     bool ordered, Combine combine) {
  if (count_ == 0) return;
  const int64_t outer = merge(element_size);
  char* const to = static_cast<char*>(dst);
  const char* const from = static_cast<const char*>(src);
  const int64_t bytes = run_ * static_cast<int64_t>(element_size);
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      int64_t rest = i / count_;
      const int64_t first = i % count_;
      const int64_t last = min(count_, first + end - i);
      char* d = to;
      const char* s = from;
      for (int k = rank_ - 1; k >= 0; --k) {
        d += rest % dims_[k].size * dims_[k].dst;
        s += rest % dims_[k].size * dims_[k].src;
        rest /= dims_[k].size;
      }
      run_part(d, s, element_size, first, last, combine);
      i += last - first;
    }
  };
  if (ordered) {
    context.parallel_for(0, outer, 1 + kParallelBytes / (bytes * count_),
                         [&](int64_t b, int64_t e) { body(b * count_, e * count_); });
  } else {
    context.parallel_for(0, outer * count_, 1 + kParallelBytes / bytes, body);
  }
}

Error make_entries(Context& context, const Shape& sizes, Span<const int64_t> strides,
                   Entries& entries) {
  entries = {nullptr, 0};
  Checked product = 1;
  bool regular = true;
  for (size_t i = sizes.rank(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (product.is(1)) entries.step = strides[i];
    regular &= (product * entries.step).is(strides[i]);
    product *= sizes[i];
  }
  const int64_t count = product.value_or(-1);
  if (regular || count == 0) return Error::Ok;
  ETX_ASSIGN(int64_t* table,
             scratch<int64_t>(context, count, "no temporary memory for the table of offsets"));
  int64_t index[kMaxRank] = {};
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    table[n] = offset;
    for (size_t i = sizes.rank(); i-- > 0;) {
      offset += strides[i];
      if (++index[i] < sizes[i]) break;
      offset -= index[i] * strides[i];
      index[i] = 0;
    }
  }
  entries.table = table;
  return Error::Ok;
}

}  // namespace etx::portable
