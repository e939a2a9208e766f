// SPDX-License-Identifier: BSD-3-Clause
#include "core/strided_copy.h"

#include <cstring>

#include "core/bytes_of.h"
#include "core/min_max.h"
#include "core/scratch.h"
#include "core/transpose_block.h"
#include "selection.h"

namespace etx::portable {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

using Plane = StridedCopy::Plane;

/// Writes `count` elements of `n` bytes that follow each other.
template <size_t n>
void fill_units(char* dst, const char* value, int64_t count) {
  constexpr int64_t kPattern = 64;
  unsigned char pattern[kPattern];
  int64_t rest = count * static_cast<int64_t>(n);
  const int64_t used = min(rest, kPattern);
  for (int64_t i = 0; i < used; i += n) std::memcpy(pattern + i, value, n);
  for (; rest >= kPattern; rest -= kPattern, dst += kPattern) std::memcpy(dst, pattern, kPattern);
  std::memcpy(dst, pattern, static_cast<size_t>(rest));
}

/// The elements of 8 bytes, the last one first.
template <size_t n>
uint64_t reverse_word(uint64_t word) {
  if (n <= 4) word = word >> 32 | word << 32;
  if (n <= 2) word = (word >> 16 & 0x0000ffff0000ffffu) | (word & 0x0000ffff0000ffffu) << 16;
  if (n == 1) word = (word >> 8 & 0x00ff00ff00ff00ffu) | (word & 0x00ff00ff00ff00ffu) << 8;
  return word;
}

/// dst[c] = src[-c] of elements.
template <size_t n>
void reverse_units(char* dst, const char* src, int64_t count) {
  constexpr int64_t kSize = n;
  int64_t c = 0;
  if constexpr (n <= 2) {
    constexpr int64_t kWord = 8 / kSize;
    for (; c + kWord <= count; c += kWord) {
      uint64_t word;
      std::memcpy(&word, src - (c + kWord - 1) * kSize, sizeof(word));
      word = reverse_word<n>(word);
      std::memcpy(dst + c * kSize, &word, sizeof(word));
    }
  }
  for (; c < count; ++c) std::memmove(dst + c * kSize, src - c * kSize, n);
}

template <size_t n>
void copy_units(const Plane& p, char* dst, const char* src) {
  constexpr int64_t kSize = n;
  for (int64_t r = 0; r < p.rows; ++r) {
    char* const d = dst + r * p.row_dst;
    const char* const s = src + r * p.row_src;
    if (p.col_dst == kSize && p.col_src == 0) {
      fill_units<n>(d, s, p.cols);
    } else if (p.col_dst == kSize && p.col_src == -kSize) {
      reverse_units<n>(d, s, p.cols);
    } else if (p.col_dst == kSize) {
      for (int64_t c = 0; c < p.cols; ++c) std::memmove(d + c * kSize, s + c * p.col_src, n);
    } else {
      for (int64_t c = 0; c < p.cols; ++c) std::memmove(d + c * p.col_dst, s + c * p.col_src, n);
    }
  }
}

/// `cols` runs of consecutive elements become one: a b c …, A B C … -> a A b B c C …
template <size_t n, int cols>
void interleave_units(const Plane& p, char* dst, const char* src) {
  for (int64_t r = 0; r < p.rows; ++r) {
    BytesOf<n> group[cols];
    for (int c = 0; c < cols; ++c) {
      std::memcpy(&group[c], src + c * p.col_src + r * static_cast<int64_t>(n), n);
    }
    std::memcpy(dst + r * static_cast<int64_t>(sizeof(group)), group, sizeof(group));
  }
}

/// Columns are consecutive in `dst`, rows are consecutive in `src`. Bands of 64 bytes, so that each
/// cache line of `src` is read once.
template <size_t n>
void transpose_units(const Plane& p, char* dst, const char* src) {
  using T = typename WordOf<n>::Type;
  constexpr int64_t kSize = n;
  constexpr int64_t kEdge = kBlockEdge<T>;
  constexpr int64_t kBand = 64 / kSize;
  if (p.rows < kEdge || p.cols < kEdge) {
    for (int64_t c = 0; c < p.cols; ++c) {
      for (int64_t r = 0; r < p.rows; ++r) {
        std::memmove(dst + r * p.row_dst + c * kSize, src + c * p.col_src + r * kSize, n);
      }
    }
    return;
  }
  // The last block of an edge begins where it ends with it.
  for (int64_t band = 0; band < p.rows; band += kBand) {
    const int64_t end = min(band + kBand, p.rows);
    for (int64_t column = 0; column < p.cols; column += kEdge) {
      const int64_t c = min(column, p.cols - kEdge);
      for (int64_t row = band; row < end; row += kEdge) {
        const int64_t r = min(row, p.rows - kEdge);
        transpose_block<T>(dst + r * p.row_dst + c * kSize, p.row_dst,
                           src + c * p.col_src + r * kSize, p.col_src);
      }
    }
  }
}

/// a A b B c C … -> a b c …, A B C …
template <size_t n>
void split_pairs(const Plane& p, char* __restrict dst, const char* __restrict src) {
  constexpr int64_t kSize = n;
  char* const __restrict second = dst + p.row_dst;
  for (int64_t c = 0; c < p.cols; ++c) {
    std::memcpy(dst + c * kSize, src + 2 * c * kSize, n);
    std::memcpy(second + c * kSize, src + (2 * c + 1) * kSize, n);
  }
}

template <size_t n>
void copy_sized(const Plane& p, char* dst, const char* src) {
  constexpr int64_t kSize = n;
  if (p.col_dst == kSize && p.row_src == kSize && p.cols > 1 && p.rows > 1) {
    const bool interleaved = p.row_dst == p.cols * kSize;
    if (interleaved && p.cols == 2) return interleave_units<n, 2>(p, dst, src);
    if (interleaved && p.cols == 3) return interleave_units<n, 3>(p, dst, src);
    if (interleaved && p.cols == 4) return interleave_units<n, 4>(p, dst, src);
    if constexpr (n < 16) {
      if (p.rows == 2 && p.col_src == 2 * kSize) return split_pairs<n>(p, dst, src);
      if (p.rows >= 4) return transpose_units<n>(p, dst, src);
    }
  }
  copy_units<n>(p, dst, src);
}

void copy_plane(const Plane& p, char* dst, const char* src) {
  switch (p.unit) {
    case 1: return copy_sized<1>(p, dst, src);
    case 2: return copy_sized<2>(p, dst, src);
    case 4: return copy_sized<4>(p, dst, src);
    case 8: return copy_sized<8>(p, dst, src);
    case 16: return copy_sized<16>(p, dst, src);
    default: break;
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.cols; ++c) {
      std::memmove(dst + r * p.row_dst + c * p.col_dst, src + r * p.row_src + c * p.col_src,
                   p.unit);
    }
  }
}

void copy_bytes(Context& context, char* dst, const char* src, int64_t bytes) {
  context.parallel_for(0, bytes, kParallelBytes, [&](int64_t begin, int64_t end) {
    std::memmove(dst + begin, src + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace

void StridedCopy::add(Checked size, Checked dst_stride, Checked src_stride) {
  empty_ |= size.is_within(INT64_MIN, 0);
  if (size.is_within(INT64_MIN, 1)) return;
  for (const Checked number : {size, dst_stride, src_stride}) {
    lost_ |= !number.is_within(INT64_MIN, INT64_MAX);
  }
  dims_[rank_++] = {size.value_or(0), dst_stride.value_or(0), src_stride.value_or(0)};
}

void StridedCopy::add_dims(const Tensor& sizes, const Tensor& dst, const Tensor& src,
                           ssize_t skip) {
  for (ssize_t d = 0; d < sizes.dim(); ++d) {
    if (d != skip) add(sizes.size(d), dst.stride(d), src.stride(d));
  }
}

bool StridedCopy::stays_within(const Place& dst, const Place& src) const {
  Footprint written(dst.first);
  Footprint read(src.first);
  for (int i = 0; i < rank_; ++i) {
    written.add(dims_[i].size, dims_[i].dst);
    read.add(dims_[i].size, dims_[i].src);
  }
  return !lost_ && written.stays_within(dst.count) && read.stays_within(src.count);
}

/// Strides in bytes, outermost first in the destination, loops that are one in both merged.
void StridedCopy::normalize(size_t element_size) {
  const int64_t unit = static_cast<int64_t>(element_size);
  for (int i = 0; i < rank_; ++i) {
    Dim dim = dims_[i];
    dim.dst *= unit;
    dim.src *= unit;
    int j = i;
    for (; j > 0 && magnitude(dims_[j - 1].dst) < magnitude(dim.dst); --j) dims_[j] = dims_[j - 1];
    dims_[j] = dim;
  }
  int merged = 0;
  for (int i = 0; i < rank_; ++i) {
    Dim& outer = dims_[merged > 0 ? merged - 1 : 0];
    const Dim inner = dims_[i];
    if (merged > 0 && outer.dst == inner.dst * inner.size && outer.src == inner.src * inner.size) {
      outer = {outer.size * inner.size, inner.dst, inner.src};
    } else {
      dims_[merged++] = inner;
    }
  }
  rank_ = merged;
}

/// Takes the loops of the innermost plane out of dims_.
StridedCopy::Plane StridedCopy::take_plane(size_t element_size) {
  const int64_t bytes = static_cast<int64_t>(element_size);
  Plane plane{1, 0, 0, 1, 0, 0, element_size};
  if (rank_ > 0 && dims_[rank_ - 1].dst == bytes && dims_[rank_ - 1].src == bytes) {
    plane.unit *= static_cast<size_t>(dims_[--rank_].size);
  }
  if (rank_ == 0) return plane;
  const Dim col = dims_[--rank_];
  plane.cols = col.size;
  plane.col_dst = col.dst;
  plane.col_src = col.src;
  if (rank_ == 0) return plane;
  int row = rank_ - 1;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i].src == static_cast<int64_t>(plane.unit)) row = i;
  }
  plane.rows = dims_[row].size;
  plane.row_dst = dims_[row].dst;
  plane.row_src = dims_[row].src;
  --rank_;
  for (int i = row; i < rank_; ++i) dims_[i] = dims_[i + 1];
  return plane;
}

void StridedCopy::copy_planes(const Plane& plane, char* dst, const char* src, int64_t begin,
                              int64_t end) const {
  int64_t index[kMaxDims];
  int64_t rest = begin;
  for (int i = rank_ - 1; i >= 0; --i) {
    index[i] = rest % dims_[i].size;
    rest /= dims_[i].size;
    dst += index[i] * dims_[i].dst;
    src += index[i] * dims_[i].src;
  }
  for (int64_t n = begin; n < end; ++n) {
    copy_plane(plane, dst, src);
    for (int i = rank_ - 1; i >= 0; --i) {
      dst += dims_[i].dst;
      src += dims_[i].src;
      if (++index[i] < dims_[i].size) break;
      dst -= index[i] * dims_[i].dst;
      src -= index[i] * dims_[i].src;
      index[i] = 0;
    }
  }
}

Error StridedCopy::run(Context& context, const Place& dst, const Place& src, size_t element_size) {
  if (empty_) return Error::Ok;
  ETX_CHECK(context, stays_within(dst, src), InvalidArgument,
            "the elements to copy must lie within the tensors");
  normalize(element_size);
  const int64_t unit = static_cast<int64_t>(element_size);
  char* const to = dst.data + dst.first.value_or(0) * unit;
  const char* const from = src.data + src.first.value_or(0) * unit;
  const Plane plane = take_plane(element_size);
  int64_t planes = 1;
  for (int i = 0; i < rank_; ++i) planes *= dims_[i].size;
  const int64_t lines = plane.rows * plane.cols;
  const int64_t bytes = lines * static_cast<int64_t>(plane.unit);
  if (planes > 1) {
    context.parallel_for(0, planes, 1 + kParallelBytes / bytes, [&](int64_t begin, int64_t end) {
      copy_planes(plane, to, from, begin, end);
    });
  } else if (lines == 1) {
    copy_bytes(context, to, from, bytes);
  } else {
    const bool by_row = plane.rows > 1;
    const int64_t count = by_row ? plane.rows : plane.cols;
    const int64_t grain = 1 + kParallelBytes / (bytes / count);
    context.parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
      Plane part = plane;
      (by_row ? part.rows : part.cols) = end - begin;
      copy_plane(part, to + begin * (by_row ? part.row_dst : part.col_dst),
                 from + begin * (by_row ? part.row_src : part.col_src));
    });
  }
  return Error::Ok;
}

Error copy_elements(Context& context, const Tensor& dst, const Tensor& src) {
  StridedCopy copy;
  copy.add_dims(src, dst, src);
  return copy.run(context, dst, src, src.element_size());
}

namespace {

/// Loops over `tensor`, with its strides and those of its elements in a dim order.
void add_packed(StridedCopy& copy, const Tensor& tensor, const uint8_t* dim_order, bool unpack) {
  Checked packed = 1;
  for (ssize_t i = tensor.dim() - 1; i >= 0; --i) {
    const ssize_t d = dim_order == nullptr ? i : dim_order[i];
    const Checked own = tensor.stride(d);
    copy.add(tensor.size(d), unpack ? own : packed, unpack ? packed : own);
    packed *= tensor.size(d);
  }
}

}  // namespace

Error pack_elements(Context& context, const Tensor& tensor, size_t size, const void* from, void* to,
                    const uint8_t* dim_order) {
  StridedCopy copy;
  add_packed(copy, tensor, dim_order, false);
  return copy.run(context, Place(to, tensor.numel()), Place(from, tensor.numel()), size);
}

Error unpack_elements(Context& context, const Tensor& tensor, const void* from,
                      const uint8_t* dim_order) {
  StridedCopy copy;
  add_packed(copy, tensor, dim_order, true);
  return copy.run(context, tensor, Place(from, tensor.numel()), tensor.element_size());
}

Error row_major(Context& context, const Tensor& tensor, const void*& data) {
  data = tensor.const_data_ptr();
  if (!kDimOrdersBuilt || tensor.is_contiguous()) return Error::Ok;
  constexpr const char* kNoMemory = "no temporary memory to reorder the dimensions of a tensor";
  ETX_ASSIGN(char* const temp,
             scratch<char>(context, static_cast<int64_t>(tensor.nbytes()), kNoMemory));
  data = temp;
  return pack_elements(context, tensor, tensor.element_size(), tensor.const_data_ptr(), temp);
}

Error copy_reshaped(Context& context, const Tensor& dst, const Tensor& src) {
  ETX_CHECK(context, dst.numel() == src.numel(), InvalidArgument,
            "out must have as many elements as the input");
  if (!kDimOrdersBuilt || dst.is_contiguous()) {
    return pack_elements(context, src, src.element_size(), src.const_data_ptr(),
                         dst.mutable_data_ptr());
  }
  const void* data = src.const_data_ptr();
  if (!src.is_contiguous()) ETX_TRY(row_major(context, src, data));
  return unpack_elements(context, dst, data);
}

Error fill_elements(Context& context, const Tensor& out, const void* value) {
  StridedCopy copy;
  copy.add(out.numel(), 1, 0);
  return copy.run(context, out, Place(value, 1), out.element_size());
}

}  // namespace etx::portable
