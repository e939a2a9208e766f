// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/bytes_of.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "ops/elementwise/blend.h"

namespace etx::portable {
namespace {

Error check_mask(Context& context, const Tensor& mask, const Tensor& out) {
  ETX_CHECK(context, mask.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_CHECK(context,
            mask.scalar_type() == ScalarType::Bool || mask.scalar_type() == ScalarType::Byte,
            InvalidArgument, "mask must be bool or uint8");
  return Error::Ok;
}

/// Loops in row-major order over the shape that self and mask broadcast to: strides of self, mask
/// and out, which may be null.
Nest<3> make_nest(const Shape& shape, const Tensor& self, const Tensor& mask, const Tensor* out) {
  Nest<3> nest;
  const ssize_t rank = static_cast<ssize_t>(shape.rank());
  for (ssize_t d = rank - 1; d >= 0; --d) {
    const int64_t strides[3] = {broadcast_stride(self, d, rank), broadcast_stride(mask, d, rank),
                                out == nullptr ? 0 : out->stride(d)};
    nest.push(shape[static_cast<size_t>(d)], strides);
  }
  return nest;
}

int64_t count_true(const Tensor& mask) {
  const uint8_t* data = mask.const_data_ptr<uint8_t>();
  int64_t count = 0;
  for (ssize_t i = 0; i < mask.numel(); ++i) count += data[i] != 0;
  return count;
}

Error masked_select_out(Context& context, const Tensor& self, const Tensor& mask, Tensor& out) {
  Shape shape;
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_mask(context, mask, out));
  ETX_TRY(broadcast_shape(context, self, mask, shape, "self and mask must broadcast to one shape"));
  Checked visited = 1;
  for (const int64_t size : shape.sizes()) visited *= size;
  ETX_CHECK(context, visited.is_within(0, INT64_MAX), InvalidArgument,
            "self and mask must not broadcast to more elements than int64 counts");
  const int64_t repeats = mask.numel() == 0 ? 0 : visited.value_or(0) / mask.numel();
  Shape selected;
  selected.push(Checked(count_true(mask)) * repeats);
  ETX_TRY(resize_out(context, out, selected));
  const int64_t limit = out.numel();
  if (limit == 0) return Error::Ok;
  const Nest<3> nest = make_nest(shape, self, mask, nullptr);
  int64_t stride[3] = {};
  if (nest.levels > 0) std::memcpy(stride, nest.stride[0], sizeof(stride));
  by_size(self.element_size(), [&](auto bytes) {
    using T = decltype(bytes);
    T* const to = out.mutable_data_ptr<T>();
    int64_t count = 0;
    nest.for_each_outer(0, nest.outer(), [&](const int64_t* at) {
      const T* from = self.const_data_ptr<T>() + at[0];
      const uint8_t* chosen = mask.const_data_ptr<uint8_t>() + at[1];
      for (int64_t i = 0; i < nest.inner() && count < limit; ++i) {
        if (chosen[i * stride[1]] != 0) to[count++] = from[i * stride[0]];
      }
    });
  });
  return Error::Ok;
}

Error masked_scatter_out(Context& context, const Tensor& self, const Tensor& mask,
                         const Tensor& source, Tensor& out) {
  Shape shape;
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_output(context, source, out));
  ETX_TRY(check_mask(context, mask, out));
  ETX_TRY(broadcast_shape(context, self, mask, shape, "self and mask must broadcast to one shape"));
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  const Checked chosen_elements = Checked(count_true(mask)) * (out.numel() / mask.numel());
  ETX_CHECK(context, chosen_elements.is_within(0, source.numel()), InvalidArgument,
            "source must have an element for each true element of mask");
  const int64_t needed = chosen_elements.value_or(0);
  const void* in_order = nullptr;
  ETX_TRY(row_major(context, source, in_order));
  const Nest<3> nest = make_nest(shape, self, mask, &out);
  int64_t stride[3] = {};
  if (nest.levels > 0) std::memcpy(stride, nest.stride[0], sizeof(stride));
  by_size(self.element_size(), [&](auto bytes) {
    using T = decltype(bytes);
    const T* const given = static_cast<const T*>(in_order);
    int64_t count = 0;
    nest.for_each_outer(0, nest.outer(), [&](const int64_t* at) {
      const T* from = self.const_data_ptr<T>() + at[0];
      T* to = out.mutable_data_ptr<T>() + at[2];
      const uint8_t* chosen = mask.const_data_ptr<uint8_t>() + at[1];
      for (int64_t i = 0; i < nest.inner(); ++i) {
        const bool replaced = chosen[i * stride[1]] != 0 && count < needed;
        to[i * stride[2]] = replaced ? given[count] : from[i * stride[0]];
        count += replaced;
      }
    });
  });
  return Error::Ok;
}

Error masked_fill_out(Context& context, const Tensor& self, const Tensor& mask, Scalar value,
                      Tensor& out) {
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, self.scalar_type() == to, InvalidArgument, "out must have the dtype of self");
  ETX_CHECK(context, is_castable(to), NotSupported, "the operator does not support this dtype");
  const Element fill = cast(value, to);
  return blend(context, mask, Operand(fill, to), Operand(self, to), out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::masked_fill.Scalar_out", masked_fill_out, kCastable | kInPlace),
    ETX_KERNEL("aten::masked_select.out", masked_select_out, kAnyDtype),
    ETX_KERNEL("aten::masked_scatter.out", masked_scatter_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(masked_kernels, kRows);

}  // namespace etx::portable
