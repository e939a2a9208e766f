// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// Copies to another shape with the same number of elements; `out` has that shape already.
Error reshape(Context& context, const Tensor& self, const Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  ETX_CHECK(context, self.numel() == out.numel(), InvalidArgument,
            "out must have as many elements as self");
  return copy_reshaped(context, out, self);
}

Error view_copy_out(Context& context, const Tensor& self, IntList size, Tensor& out) {
  Shape shape;
  Checked product = 1;
  size_t inferred = size.size();
  for (size_t i = 0; i < size.size(); ++i) {
    shape.push(size[i]);
    if (size[i] == -1 && inferred == size.size()) {
      inferred = i;
      continue;
    }
    ETX_CHECK(context, size[i] >= 0 && size[i] <= INT32_MAX, InvalidArgument,
              "size may hold one -1 and otherwise numbers from 0 to 2147483647");
    product *= size[i];
  }
  const int64_t known = product.value_or(-1);
  if (inferred < size.size() && inferred < kMaxRank) {
    ETX_CHECK(context, known > 0 && self.numel() % known == 0, InvalidArgument,
              "the product of size must divide the number of elements of self");
    shape[inferred] = self.numel() / known;
  } else {
    ETX_CHECK(context, known == self.numel(), InvalidArgument,
              "size must have as many elements as self");
  }
  ETX_TRY(resize_out(context, out, shape));
  return reshape(context, self, out);
}

/// alias, detach and lift_fresh differ only for autograd.
Error copy_out_of_place(Context& context, const Tensor& self, Tensor& out) {
  ETX_TRY(resize_out(context, out, Shape(self)));
  ETX_TRY(check_output(context, self, out));
  return copy_elements(context, out, self);
}

Error squeeze(Context& context, const Tensor& self, IntList dims, Tensor& out) {
  bool dropped[kMaxRank] = {};
  for (const int64_t item : dims) {
    ssize_t dim = 0;
    ETX_TRY(wrap_dim(context, item, self.dim(), dim));
    dropped[dim] = size_of(self, dim) == 1;
  }
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (!dropped[d]) shape.push(self.size(d));
  }
  ETX_TRY(resize_out(context, out, shape));
  return reshape(context, self, out);
}

Error squeeze_copy_dim_out(Context& context, const Tensor& self, int64_t dim, Tensor& out) {
  return squeeze(context, self, IntList(&dim, 1), out);
}

Error squeeze_copy_dims_out(Context& context, const Tensor& self, IntList dims, Tensor& out) {
  return squeeze(context, self, dims, out);
}

Error unsqueeze_copy_out(Context& context, const Tensor& self, int64_t dim, Tensor& out) {
  ssize_t at = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim() + 1, at));
  Shape shape;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d == at) shape.push(1);
    shape.push(self.size(d));
  }
  if (at == self.dim()) shape.push(1);
  ETX_TRY(resize_out(context, out, shape));
  return reshape(context, self, out);
}

ScalarType real_type(ScalarType type) {
  switch (type) {
    case ScalarType::ComplexHalf: return ScalarType::Half;
    case ScalarType::ComplexFloat: return ScalarType::Float;
    case ScalarType::ComplexDouble: return ScalarType::Double;
    default: return type;
  }
}

constexpr uint64_t kComplex = dtype_bit(ScalarType::ComplexHalf) |
                              dtype_bit(ScalarType::ComplexFloat) |
                              dtype_bit(ScalarType::ComplexDouble);

/// (..., complex) -> (..., 2): real and imaginary part.
Error view_as_real_copy_out(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context, dtype_bit(self.scalar_type()) & kComplex, NotSupported,
            "self must be complex");
  ETX_CHECK(context, out.scalar_type() == real_type(self.scalar_type()), InvalidArgument,
            "out must have the dtype of self's real part");
  Shape shape(self);
  shape.push(2);
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    copy.add(self.size(d), out.stride(d), Checked(2) * self.stride(d));
  }
  copy.add(2, out.stride(-1), 1);
  const Checked parts = Checked(2) * self.numel();
  return copy.run(context, out, Place(self.const_data_ptr(), parts.value_or(0)),
                  out.element_size());
}

/// (..., 2) -> (..., complex).
Error view_as_complex_copy_out(Context& context, const Tensor& self, Tensor& out) {
  const ssize_t rank = self.dim() - 1;
  ETX_CHECK(context, dtype_bit(out.scalar_type()) & kComplex, NotSupported, "out must be complex");
  ETX_CHECK(context, self.scalar_type() == real_type(out.scalar_type()), InvalidArgument,
            "self must have the dtype of out's real part");
  ETX_CHECK(context, rank >= 0 && self.size(rank) == 2, InvalidArgument,
            "the last dimension of self must have size 2");
  Shape shape;
  for (ssize_t d = 0; d < rank; ++d) shape.push(self.size(d));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < rank; ++d) {
    copy.add(self.size(d), Checked(2) * out.stride(d), self.stride(d));
  }
  copy.add(2, 1, self.stride(rank));
  const Checked parts = Checked(2) * out.numel();
  return copy.run(context, Place(out.mutable_data_ptr(), parts.value_or(0)), self,
                  self.element_size());
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::view_copy.out", view_copy_out, kAnyDtype),
    ETX_KERNEL("aten::alias_copy.out", copy_out_of_place, kAnyDtype),
    ETX_KERNEL("aten::detach_copy.out", copy_out_of_place, kAnyDtype),
    ETX_KERNEL("aten::lift_fresh_copy.out", copy_out_of_place, kAnyDtype),
    ETX_KERNEL("aten::squeeze_copy.dim_out", squeeze_copy_dim_out, kAnyDtype),
    ETX_KERNEL("aten::squeeze_copy.dims_out", squeeze_copy_dims_out, kAnyDtype),
    ETX_KERNEL("aten::unsqueeze_copy.out", unsqueeze_copy_out, kAnyDtype),
    ETX_KERNEL("aten::view_as_real_copy.out", view_as_real_copy_out, kComplex | Floating::bits),
    ETX_KERNEL("aten::view_as_complex_copy.out", view_as_complex_copy_out,
               kComplex | Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(view_kernels, kRows);

}  // namespace etx::portable
