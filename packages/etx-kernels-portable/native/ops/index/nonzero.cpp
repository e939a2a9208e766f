// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/shape.h"

namespace etx::portable {
namespace {

/// The bits of an element that make it different from zero: all but signs of floating parts.
uint64_t value_bits(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
    case ScalarType::BFloat16: return 0x7fff;
    case ScalarType::Float: return 0x7fffffff;
    case ScalarType::Double: return 0x7fffffffffffffff;
    case ScalarType::ComplexHalf: return 0x7fff7fff;
    case ScalarType::ComplexFloat: return 0x7fffffff7fffffff;
    default: return UINT64_MAX;
  }
}

/// Reads elements of one width as integers; those that are not zero count.
struct Elements {
  const char* data;
  size_t size;
  uint64_t bits;

  explicit Elements(const Tensor& tensor)
      : data(static_cast<const char*>(tensor.const_data_ptr())),
        size(tensor.element_size()),
        bits(value_bits(tensor.scalar_type())) {}

  template <typename T>
  bool nonzero_as(int64_t i) const {
    T v;
    std::memcpy(&v, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return (v & bits) != 0;
  }
  bool nonzero(int64_t i) const {
    switch (size) {
      case 1: return nonzero_as<uint8_t>(i);
      case 2: return nonzero_as<uint16_t>(i);
      case 4: return nonzero_as<uint32_t>(i);
      default: return nonzero_as<uint64_t>(i);
    }
  }
};

/// out[k] = the indices of the k-th element of self that is not zero.
Error nonzero_out(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context, self.element_size() <= 8, NotSupported,
            "self must have elements of at most 8 bytes");
  ETX_CHECK(context, out.scalar_type() == ScalarType::Long, InvalidArgument, "out must be int64");
  ETX_CHECK(context, self.impl() != out.impl(), InvalidArgument, "out must not be an input");
  const Elements elements(self);
  const ssize_t rank = self.dim();
  int64_t count = 0;
  for (ssize_t i = 0; i < self.numel(); ++i) count += elements.nonzero(i);
  Shape shape;
  shape.push(count);
  shape.push(rank);
  ETX_TRY(resize_out(context, out, shape));
  int64_t* const to = out.mutable_data_ptr<int64_t>();
  const int64_t row_stride = out.stride(0);
  const int64_t column_stride = out.stride(1);
  int64_t index[kMaxRank] = {};
  int64_t at = 0;
  int64_t row = 0;
  while (row < count) {
    if (elements.nonzero(at)) {
      for (ssize_t d = 0; d < rank; ++d) to[row * row_stride + d * column_stride] = index[d];
      ++row;
    }
    ssize_t d = rank - 1;
    for (; d >= 0; --d) {
      at += self.stride(d);
      if (++index[d] < self.size(d)) break;
      at -= index[d] * self.stride(d);
      index[d] = 0;
    }
    if (d < 0) break;
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::nonzero.out", nonzero_out, kAnyDtype & ~dtype_bit(ScalarType::ComplexDouble)),
};

}  // namespace

ETX_KERNEL_TABLE(nonzero_kernels, kRows);

}  // namespace etx::portable
