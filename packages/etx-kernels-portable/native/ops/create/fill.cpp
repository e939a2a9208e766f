// SPDX-License-Identifier: BSD-3-Clause
/// Tensors made of one number.

#include <optional>

#include "core/cast.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Shape shape_of(IntList size) {
  Shape shape;
  for (const int64_t s : size) shape.push(s);
  return shape;
}

Error fill(Context& context, const Tensor& out, const Shape& shape, const Scalar& value) {
  ETX_CHECK(context, is_castable(out.scalar_type()), NotSupported,
            "the operator does not support the dtype of out");
  ETX_TRY(resize_out(context, out, shape));
  const Element element = cast(value, out.scalar_type());
  return fill_elements(context, out, element.bytes);
}

Error full_out(Context& context, IntList size, Scalar fill_value, Tensor& out) {
  return fill(context, out, shape_of(size), fill_value);
}
Error full_like_out(Context& context, const Tensor& self, Scalar fill_value, std::optional<int64_t>,
                    Tensor& out) {
  return fill(context, out, Shape(self), fill_value);
}
Error zeros_out(Context& context, IntList size, Tensor& out) {
  return fill(context, out, shape_of(size), Scalar(int64_t{0}));
}
Error ones_out(Context& context, IntList size, Tensor& out) {
  return fill(context, out, shape_of(size), Scalar(int64_t{1}));
}
Error empty_out(Context& context, IntList size, std::optional<int64_t>, Tensor& out) {
  return resize_out(context, out, shape_of(size));
}
Error scalar_tensor_out(Context& context, Scalar s, Tensor& out) {
  return fill(context, out, Shape(), s);
}
Error fill_scalar_out(Context& context, const Tensor& self, Scalar value, Tensor& out) {
  return fill(context, out, Shape(self), value);
}

Error fill_tensor_out(Context& context, const Tensor& self, const Tensor& value, Tensor& out) {
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, value.numel() == 1, InvalidArgument, "value must have exactly one element");
  ETX_CHECK(context, is_castable(value.scalar_type()) && is_castable(to), NotSupported,
            "the operator does not support these dtypes");
  ETX_TRY(resize_out(context, out, Shape(self)));
  Element element;
  cast(value.const_data_ptr(), value.scalar_type(), 1, element.bytes, to, 1);
  return fill_elements(context, out, element.bytes);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::full.out", full_out, kCastable),
    ETX_KERNEL("aten::full_like.out", full_like_out, kCastable),
    ETX_KERNEL("aten::zeros.out", zeros_out, kCastable),
    ETX_KERNEL("aten::ones.out", ones_out, kCastable),
    ETX_KERNEL("aten::empty.out", empty_out, kAnyDtype),
    ETX_KERNEL("aten::scalar_tensor.out", scalar_tensor_out, kCastable),
    ETX_KERNEL("aten::fill.Scalar_out", fill_scalar_out, kCastable),
    ETX_KERNEL("aten::fill.Tensor_out", fill_tensor_out, kCastable),
};

}  // namespace

ETX_KERNEL_TABLE(fill_kernels, kRows);

}  // namespace etx::portable
