// SPDX-License-Identifier: BSD-3-Clause
#include "core/complex.h"

#include <cmath>
#include <cstring>

#include "core/broadcast.h"
#include "core/cast.h"
#include "core/dispatch.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

using Parts = Join<Float32, Float64, DtypeList<DtypeTag<ScalarType::Half, Half>>>;

/// Two numbers in which the parts of any complex dtype can be compared and added.
struct Pair {
  double re, im;
};

Pair load(const char* at, ScalarType type, int64_t index) {
  const ScalarType part = part_of(type);
  const int64_t width = static_cast<int64_t>(element_size(part));
  Pair value{0, 0};
  if (!is_complex(type)) {
    cast(at + index * width, part, 1, &value.re, ScalarType::Double, 1);
    return value;
  }
  cast(at + 2 * index * width, part, 1, &value.re, ScalarType::Double, 1);
  cast(at + (2 * index + 1) * width, part, 1, &value.im, ScalarType::Double, 1);
  return value;
}

/// Calls f with the offsets in `a`, `b` and `out` of each element of out.
template <typename F>
void for_each(const Tensor& a, const Tensor* b, const Tensor& out, const F& f) {
  Nest<3> nest;
  const ssize_t rank = out.dim();
  for (ssize_t d = rank - 1; d >= 0; --d) {
    const int64_t strides[3] = {broadcast_stride(a, d, rank),
                                b == nullptr ? 0 : broadcast_stride(*b, d, rank), out.stride(d)};
    nest.push(out.size(d), strides);
  }
  int64_t stride[3] = {};
  if (nest.levels > 0) std::memcpy(stride, nest.stride[0], sizeof(stride));
  nest.for_each_outer(0, nest.outer(), [&](const int64_t* at) {
    for (int64_t i = 0; i < nest.inner(); ++i) {
      f(at[0] + i * stride[0], at[1] + i * stride[1], at[2] + i * stride[2]);
    }
  });
}

}  // namespace

ScalarType part_of(ScalarType type) {
  switch (type) {
    case ScalarType::ComplexHalf: return ScalarType::Half;
    case ScalarType::ComplexFloat: return ScalarType::Float;
    case ScalarType::ComplexDouble: return ScalarType::Double;
    default: return type;
  }
}

Error complex_abs(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context, out.scalar_type() == part_of(self.scalar_type()), InvalidArgument,
            "out must have the dtype of self's parts");
  ETX_CHECK(context, self.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.numel() == 0) return Error::Ok;
  return dispatch(context, Parts{}, out.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using V = Compute<T>;
    const T* const x = static_cast<const T*>(self.const_data_ptr());
    T* const y = out.mutable_data_ptr<T>();
    for_each(self, nullptr, out, [&](int64_t i, int64_t, int64_t o) {
      y[o] = static_cast<T>(std::hypot(static_cast<V>(x[2 * i]), static_cast<V>(x[2 * i + 1])));
    });
    return Error::Ok;
  });
}

Error complex_equal(Context& context, const Tensor& self, const Tensor& other, bool equal,
                    Tensor& out) {
  const ScalarType type = self.scalar_type();
  ETX_CHECK(context, is_complex(type) && type == other.scalar_type(), NotSupported,
            "self and other must be of one complex dtype");
  ETX_CHECK(context, out.scalar_type() == ScalarType::Bool, InvalidArgument,
            "out must have dtype bool");
  Shape shape;
  ETX_TRY(
      broadcast_shape(context, self, other, shape, "self and other must broadcast to one shape"));
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  const char* const x = static_cast<const char*>(self.const_data_ptr());
  const char* const y = static_cast<const char*>(other.const_data_ptr());
  uint8_t* const result = out.mutable_data_ptr<uint8_t>();
  for_each(self, &other, out, [&](int64_t i, int64_t j, int64_t o) {
    const Pair a = load(x, type, i);
    const Pair b = load(y, type, j);
    result[o] = (a.re == b.re && a.im == b.im) == equal;
  });
  return Error::Ok;
}

Error complex_equal(Context& context, const Tensor& self, const Scalar& other, bool equal,
                    Tensor& out) {
  const ScalarType type = self.scalar_type();
  ETX_CHECK(context, out.scalar_type() == ScalarType::Bool, InvalidArgument,
            "out must have dtype bool");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.numel() == 0) return Error::Ok;
  const Element rounded = cast(other, part_of(type));
  double value = 0;
  cast(rounded.bytes, part_of(type), 1, &value, ScalarType::Double, 1);
  const char* const x = static_cast<const char*>(self.const_data_ptr());
  uint8_t* const result = out.mutable_data_ptr<uint8_t>();
  for_each(self, nullptr, out, [&](int64_t i, int64_t, int64_t o) {
    const Pair a = load(x, type, i);
    result[o] = (a.re == value && a.im == 0) == equal;
  });
  return Error::Ok;
}

Error convert_complex(Context& context, const Tensor& src, const Tensor& out) {
  const ScalarType from = src.scalar_type();
  const ScalarType to = out.scalar_type();
  const ScalarType part = part_of(to);
  ETX_CHECK(context, is_castable(part_of(from)) && is_castable(part), NotSupported,
            "there is no conversion between these dtypes");
  if (out.numel() == 0) return Error::Ok;
  const int64_t width = static_cast<int64_t>(element_size(part));
  const char* const x = static_cast<const char*>(src.const_data_ptr());
  char* const y = static_cast<char*>(out.mutable_data_ptr());
  for_each(src, nullptr, out, [&](int64_t i, int64_t, int64_t o) {
    Pair value = load(x, from, i);
    if (to == ScalarType::Bool) value.re = value.re != 0 || value.im != 0;
    const int64_t at = is_complex(to) ? 2 * o : o;
    cast(&value.re, ScalarType::Double, 1, y + at * width, part, 1);
    if (is_complex(to)) cast(&value.im, ScalarType::Double, 1, y + (at + 1) * width, part, 1);
  });
  return Error::Ok;
}

}  // namespace etx::portable
