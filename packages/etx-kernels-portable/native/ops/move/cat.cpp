// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/convert.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// ATen's exception: a tensor of shape (0,) takes part in no concatenation.
bool is_skipped(const Tensor& tensor) { return tensor.dim() == 1 && tensor.size(0) == 0; }

/// Copies `part`, converted to out's dtype, to the position `start` of dimension `dim` of `out`.
Error place(Context& context, const Tensor& part, ssize_t dim, int64_t start, const Tensor& out) {
  const void* src = part.const_data_ptr();
  if (part.scalar_type() != out.scalar_type()) {
    ETX_TRY(convert_to_temp(context, part, out.scalar_type(), src));
  }
  StridedCopy copy;
  copy.add_dims(part, out, part);
  return copy.run(context, Place(out, Checked(start) * out.stride(dim)), Place(src, part.numel()),
                  out.element_size());
}

Error cat_out(Context& context, TensorList tensors, int64_t dim, Tensor& out) {
  ETX_CHECK(context, tensors.size() > 0, InvalidArgument, "tensors must not be empty");
  size_t first = 0;
  while (first + 1 < tensors.size() && is_skipped(tensors[first])) ++first;
  const Tensor model = tensors[first];
  ssize_t axis = 0;
  ETX_CHECK(context, model.dim() > 0, InvalidArgument, "tensors must not be of rank 0");
  ETX_TRY(wrap_dim(context, dim, model.dim(), axis));
  Shape shape(model);
  int64_t& length = shape[static_cast<size_t>(axis)];
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor part = tensors[i];
    ETX_CHECK(context, part.impl() != out.impl(), InvalidArgument, "out must not be an input");
    if (i <= first || is_skipped(part)) continue;
    bool fits = part.dim() == model.dim();
    for (ssize_t d = 0; fits && d < model.dim(); ++d) {
      fits = d == axis || part.size(d) == model.size(d);
    }
    ETX_CHECK(context, fits, InvalidArgument,
              "tensors must have equal shapes, except in dimension dim");
    length += part.size(axis);
  }
  ETX_TRY(resize_out(context, out, shape));
  int64_t start = 0;
  for (size_t i = first; i < tensors.size(); ++i) {
    const Tensor part = tensors[i];
    if (part.numel() == 0) {
      if (!is_skipped(part)) start += part.size(axis);
      continue;
    }
    ETX_TRY(place(context, part, axis, start, out));
    start += part.size(axis);
  }
  return Error::Ok;
}

Error stack_out(Context& context, TensorList tensors, int64_t dim, Tensor& out) {
  ETX_CHECK(context, tensors.size() > 0, InvalidArgument, "tensors must not be empty");
  const Tensor model = tensors[0];
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, model.dim() + 1, axis));
  Shape shape;
  for (ssize_t d = 0; d <= model.dim(); ++d) {
    shape.push(d == axis ? static_cast<int64_t>(tensors.size()) : model.size(d < axis ? d : d - 1));
  }
  ETX_TRY(resize_out(context, out, shape));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor part = tensors[i];
    ETX_CHECK(context, equal(part.sizes(), model.sizes()), InvalidArgument,
              "tensors must have equal shapes");
    ETX_CHECK(context, part.impl() != out.impl(), InvalidArgument, "out must not be an input");
    if (part.numel() == 0) continue;
    const void* src = part.const_data_ptr();
    if (part.scalar_type() != out.scalar_type()) {
      ETX_TRY(convert_to_temp(context, part, out.scalar_type(), src));
    }
    StridedCopy copy;
    for (ssize_t d = 0; d < part.dim(); ++d) {
      copy.add(part.size(d), out.stride(d < axis ? d : d + 1), part.stride(d));
    }
    const Checked first = Checked(static_cast<int64_t>(i)) * out.stride(axis);
    ETX_TRY(copy.run(context, Place(out, first), Place(src, part.numel()), out.element_size()));
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::cat.out", cat_out, kAnyDtype),
    ETX_KERNEL("aten::stack.out", stack_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(cat_kernels, kRows);

}  // namespace etx::portable
