// SPDX-License-Identifier: BSD-3-Clause
/// Tensors made of nothing but their arguments, and triangles.

#include <cmath>
#include <cstring>
#include <optional>

#include "core/broadcast.h"
#include "core/cast.h"
#include "core/dispatch.h"
#include "core/loops.h"
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

template <typename T, typename N>
void arange_loop(N start, N step, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const N value = wrap_add(start, wrap_mul(static_cast<N>(i), step));
    y[i] = static_cast<T>(static_cast<Compute<T>>(value));
  }
}

/// Steps from `start` until `end` is reached or passed, where `step` leads towards it.
uint64_t steps(int64_t start, int64_t end, int64_t step) {
  const uint64_t a = static_cast<uint64_t>(start);
  const uint64_t b = static_cast<uint64_t>(end);
  const uint64_t distance = step > 0 ? b - a : a - b;
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return distance / by + (distance % by != 0 ? 1 : 0);
}

bool fits_int64(const Scalar& v) {
  return !v.is_floating() || std::fabs(v.to<double>()) < 9223372036854775808.0;
}

Error arange(Context& context, const Scalar& start, const Scalar& end, const Scalar& step,
             const Tensor& out) {
  const ScalarType dtype = out.scalar_type();
  const bool given_integers = !start.is_floating() && !end.is_floating() && !step.is_floating();
  const bool integral = given_integers || !is_floating(dtype);
  const bool counts_integers = given_integers || dtype == ScalarType::Long;
  ETX_CHECK(context, !integral || (fits_int64(start) && fits_int64(end) && fits_int64(step)),
            InvalidArgument, "start, end and step must fit into an int64");
  const double from =
      counts_integers ? static_cast<double>(start.to<int64_t>()) : start.to<double>();
  const double to = counts_integers ? static_cast<double>(end.to<int64_t>()) : end.to<double>();
  const double by = counts_integers ? static_cast<double>(step.to<int64_t>()) : step.to<double>();
  ETX_CHECK(context, by != 0 && std::isfinite(from) && std::isfinite(to), InvalidArgument,
            "step must not be zero; start and end must be finite");
  const double span = (to - from) / by;
  ETX_CHECK(context, span >= 0, InvalidArgument, "step must lead from start to end");
  const double count =
      counts_integers
          ? static_cast<double>(steps(start.to<int64_t>(), end.to<int64_t>(), step.to<int64_t>()))
          : std::ceil(span);
  ETX_CHECK(context, count <= INT32_MAX, InvalidArgument, "the result has too many elements");
  Shape shape;
  shape.push(static_cast<int64_t>(count));
  ETX_TRY(resize_out(context, out, shape));
  return dispatch(context, Real{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.mutable_data_ptr<T>();
    if (integral) {
      arange_loop(start.to<int64_t>(), step.to<int64_t>(), y, out.numel());
    } else {
      arange_loop(from, by, y, out.numel());
    }
    return Error::Ok;
  });
}

Error arange_out(Context& context, Scalar end, Tensor& out) {
  return arange(context, Scalar(int64_t{0}), end, Scalar(int64_t{1}), out);
}
Error arange_start_out(Context& context, Scalar start, Scalar end, Scalar step, Tensor& out) {
  return arange(context, start, end, step, out);
}

/// Zero for each element above the diagonal, in any dim order.
void zero_above(int64_t diagonal, const Tensor& out) {
  Nest<1> nest;
  const ssize_t row = out.dim() - 2, column = out.dim() - 1;
  for (ssize_t d = row - 1; d >= 0; --d) nest.push(out.size(d), {out.stride(d)});
  if (out.numel() == 0) return;
  nest.for_each(0, nest.inner() * nest.outer(), [&](const int64_t* offsets) {
    for (int64_t i = 0; i < out.size(row); ++i) {
      for (int64_t j = 0; j < out.size(column); ++j) {
        if (j - i <= diagonal) continue;
        const int64_t at = offsets[0] + i * out.stride(row) + j * out.stride(column);
        std::memset(mutable_element_ptr(out, at), 0, out.element_size());
      }
    }
  });
}

/// Keeps what lies on or below the diagonal of the two last dimensions, zero elsewhere.
Error tril_out(Context& context, const Tensor& self, int64_t diagonal, Tensor& out) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, self.dim() >= 2, InvalidArgument, "self must have at least 2 dimensions");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (!self.is_contiguous() || !out.is_contiguous()) {
    ETX_TRY(copy_elements(context, out, self));
    zero_above(diagonal, out);
    return Error::Ok;
  }
  const int64_t rows = self.size(-2);
  const int64_t columns = self.size(-1);
  if (self.numel() == 0) return Error::Ok;
  const size_t row_bytes = static_cast<size_t>(columns) * self.element_size();
  for (int64_t row = 0; row < self.numel() / columns; ++row) {
    int64_t kept = diagonal < -rows ? 0 : diagonal > columns ? columns : row % rows + diagonal + 1;
    kept = kept < 0 ? 0 : kept > columns ? columns : kept;
    const size_t kept_bytes = static_cast<size_t>(kept) * self.element_size();
    char* to = mutable_element_ptr(out, row * columns);
    std::memmove(to, element_ptr(self, row * columns), kept_bytes);
    if (kept_bytes < row_bytes) std::memset(to + kept_bytes, 0, row_bytes - kept_bytes);
  }
  return Error::Ok;
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
    ETX_KERNEL("aten::arange.out", arange_out, Real::bits),
    ETX_KERNEL("aten::arange.start_out", arange_start_out, Real::bits),
    ETX_KERNEL("aten::tril.out", tril_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(fill_kernels, kRows);

}  // namespace etx::portable
