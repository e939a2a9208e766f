// SPDX-License-Identifier: BSD-3-Clause
#include "strided_copy.h"

#include <cstring>

#include "unit.h"

namespace etx::portable {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

using Plane = StridedCopy::Plane;

template <size_t n>
void copy_units(const Plane& p, char* dst, const char* src) {
  for (int64_t r = 0; r < p.rows; ++r) {
    char* d = dst + r * p.row_dst;
    const char* s = src + r * p.row_src;
    if (p.col_dst == static_cast<int64_t>(n)) {
      if (p.col_src == 0) {
        Unit<n> value;
        std::memcpy(&value, s, n);
        for (int64_t c = 0; c < p.cols; ++c) std::memcpy(d + c * int64_t{n}, &value, n);
        continue;
      }
      for (int64_t c = 0; c < p.cols; ++c) std::memcpy(d + c * int64_t{n}, s + c * p.col_src, n);
      continue;
    }
    for (int64_t c = 0; c < p.cols; ++c) std::memcpy(d + c * p.col_dst, s + c * p.col_src, n);
  }
}

/// Columns are consecutive in `dst`, rows are consecutive in `src`.
template <size_t n>
void transpose_units(const Plane& p, char* dst, const char* src) {
  constexpr int64_t kTile = n <= 2 ? 32 : n <= 4 ? 16 : 8;
  for (int64_t r0 = 0; r0 < p.rows; r0 += kTile) {
    const int64_t rows = p.rows - r0 < kTile ? p.rows - r0 : kTile;
    for (int64_t c0 = 0; c0 < p.cols; c0 += kTile) {
      const int64_t cols = p.cols - c0 < kTile ? p.cols - c0 : kTile;
      Unit<n> tile[kTile][kTile];
      const char* s = src + r0 * int64_t{n} + c0 * p.col_src;
      char* d = dst + r0 * p.row_dst + c0 * int64_t{n};
      if (rows == kTile && cols == kTile) {
        for (int64_t c = 0; c < kTile; ++c) {
          for (int64_t r = 0; r < kTile; ++r) {
            std::memcpy(&tile[r][c], s + c * p.col_src + r * int64_t{n}, n);
          }
        }
        for (int64_t r = 0; r < kTile; ++r) std::memcpy(d + r * p.row_dst, tile[r], kTile * n);
        continue;
      }
      for (int64_t c = 0; c < cols; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          std::memcpy(d + r * p.row_dst + c * int64_t{n}, s + c * p.col_src + r * int64_t{n}, n);
        }
      }
    }
  }
}

template <size_t n>
void copy_sized(const Plane& p, char* dst, const char* src) {
  constexpr int64_t kUnit = n;
  const bool transposed = p.col_dst == kUnit && p.row_src == kUnit && p.cols > 1 && p.rows > 1;
  transposed ? transpose_units<n>(p, dst, src) : copy_units<n>(p, dst, src);
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
      std::memcpy(dst + r * p.row_dst + c * p.col_dst, src + r * p.row_src + c * p.col_src, p.unit);
    }
  }
}

void copy_bytes(Context& context, char* dst, const char* src, int64_t bytes) {
  context.parallel_for(0, bytes, kParallelBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace

void StridedCopy::add(int64_t size, int64_t dst_stride, int64_t src_stride) {
  empty_ |= size == 0;
  if (size <= 1) return;
  dims_[rank_++] = {size, dst_stride, src_stride};
}

void StridedCopy::add_dims(const Tensor& sizes, const Tensor& dst, const Tensor& src,
                           ssize_t skip) {
  for (ssize_t d = 0; d < sizes.dim(); ++d) {
    if (d != skip) add(sizes.size(d), dst.stride(d), src.stride(d));
  }
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

void StridedCopy::run(Context& context, void* dst, const void* src, size_t element_size) {
  if (empty_) return;
  normalize(element_size);
  char* const to = static_cast<char*>(dst);
  const char* const from = static_cast<const char*>(src);
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
}

void copy_elements(Context& context, const Tensor& dst, const Tensor& src) {
  StridedCopy copy;
  copy.add_dims(src, dst, src);
  copy.run(context, dst.mutable_data_ptr(), src.const_data_ptr(), src.element_size());
}

namespace {

/// Adds loops over `tensor`, one side with its strides, the other in the order of the indices.
void copy_row_major(Context& context, const Tensor& tensor, void* dst, const void* src,
                    bool tensor_is_dst) {
  StridedCopy copy;
  int64_t stride = 1;
  for (ssize_t d = tensor.dim() - 1; d >= 0; --d) {
    copy.add(tensor.size(d), tensor_is_dst ? tensor.stride(d) : stride,
             tensor_is_dst ? stride : tensor.stride(d));
    stride *= tensor.size(d);
  }
  if (stride == 0) return;
  copy.run(context, dst, src, tensor.element_size());
}

}  // namespace

Error copy_reshaped(Context& context, const Tensor& dst, const Tensor& src) {
  if (dst.is_contiguous()) {
    copy_row_major(context, src, dst.mutable_data_ptr(), src.const_data_ptr(), false);
    return Error::Ok;
  }
  if (src.is_contiguous()) {
    copy_row_major(context, dst, dst.mutable_data_ptr(), src.const_data_ptr(), true);
    return Error::Ok;
  }
  void* temp = context.allocate_temp(src.nbytes());
  ETX_CHECK(context, temp != nullptr, MemoryAllocationFailed,
            "no temporary memory to reorder the dimensions of self");
  copy_row_major(context, src, temp, src.const_data_ptr(), false);
  copy_row_major(context, dst, dst.mutable_data_ptr(), temp, true);
  return Error::Ok;
}

void fill_elements(Context& context, void* dst, int64_t count, const void* value,
                   size_t element_size) {
  StridedCopy copy;
  copy.add(count, 1, 0);
  copy.run(context, dst, value, element_size);
}

}  // namespace etx::portable
