// SPDX-License-Identifier: BSD-3-Clause
/// Copies: between dtypes, between dim orders, into broadcast shapes.

#include <cstring>
#include <optional>

#include "core/broadcast.h"
#include "core/complex.h"
#include "core/dispatch.h"
#include "core/map.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// y[i] = x[i], where the elements have `sizeof(Bits)` bytes.
template <typename Bits>
void copy_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const Bits* x = static_cast<const Bits*>(in[0]);
  Bits* y = static_cast<Bits*>(out);
  if ((scalars & 1u) == 0) {
    std::memmove(y, x, static_cast<size_t>(n) * sizeof(Bits));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = *x;
  }
}

Loop loop_of(size_t size) {
  switch (size) {
    case 1: return &copy_loop<uint8_t>;
    case 2: return &copy_loop<uint16_t>;
    case 4: return &copy_loop<uint32_t>;
    case 8: return &copy_loop<uint64_t>;
    default: return nullptr;
  }
}

bool same_sizes(const Tensor& a, const Tensor& b) { return equal(a.sizes(), b.sizes()); }

void cast_flat(Context& context, const Tensor& src, const Tensor& out) {
  const ScalarType from = src.scalar_type();
  const ScalarType to = out.scalar_type();
  context.parallel_for(0, out.numel(), 32768, [&](int64_t begin, int64_t end) {
    cast(element_ptr(src, begin), from, 1, mutable_element_ptr(out, begin), to, end - begin);
  });
}

/// out[...] = src[...], where out has the shape of the result and src broadcasts to it.
Error copy_into(Context& context, const Tensor& src, const Tensor& out) {
  const bool same_dtype = src.scalar_type() == out.scalar_type();
  if (same_dtype && same_sizes(src, out)) {
    if (same_layout(src, out) && src.const_data_ptr() == out.const_data_ptr()) return Error::Ok;
    return copy_elements(context, out, src);
  }
  const bool any_complex = is_complex(src.scalar_type()) || is_complex(out.scalar_type());
  const bool castable = is_castable(src.scalar_type()) && is_castable(out.scalar_type());
  ETX_CHECK(context, any_complex || castable, NotSupported,
            "there is no conversion between these dtypes");
  if (!any_complex && same_layout(src, out)) {
    cast_flat(context, src, out);
    return Error::Ok;
  }
  ETX_CHECK(context, src.dim() <= out.dim(), InvalidArgument,
            "src must have a shape that broadcasts to self");
  for (ssize_t d = 1; d <= src.dim(); ++d) {
    ETX_CHECK(context, src.size(-d) == 1 || src.size(-d) == out.size(-d), InvalidArgument,
              "src must have a shape that broadcasts to self");
  }
  if (any_complex) return convert_complex(context, src, out);
  Map m;
  m.out_as = out.scalar_type();
  m.loop = loop_of(out.element_size());
  const Operand operands[] = {Operand(src, m.out_as), Operand(out, m.out_as)};
  return map(context, operands, out, m);
}

Error copy_out(Context& context, const Tensor& self, const Tensor& src, bool, Tensor& out) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_TRY(resize_out(context, out, Shape(self)));
  return copy_into(context, src, out);
}

Error copy_(Context& context, Tensor& self, const Tensor& src, bool) {
  return copy_into(context, src, self);
}

Error copy_same(Context& context, const Tensor& self, Tensor& out) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_TRY(resize_out(context, out, Shape(self)));
  return copy_into(context, self, out);
}

Error clone_out(Context& context, const Tensor& self, std::optional<int64_t>, Tensor& out) {
  return copy_same(context, self, out);
}

Error to_copy_out(Context& context, const Tensor& self, bool, std::optional<int64_t>, Tensor& out) {
  ETX_TRY(resize_out(context, out, Shape(self)));
  return copy_into(context, self, out);
}

Error check_dim_order(Context& context, const std::optional<IntList>& dim_order,
                      const Tensor& out) {
  if (!dim_order.has_value()) return Error::Ok;
  ETX_CHECK(context,
            dim_order->size() == out.dim_order().size() && equal(*dim_order, out.dim_order()),
            InvalidArgument, "out must have the dim order that dim_order gives");
  return Error::Ok;
}

Error to_dim_order_copy_out(Context& context, const Tensor& self, bool,
                            std::optional<IntList> dim_order, Tensor& out) {
  ETX_TRY(check_dim_order(context, dim_order, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  return copy_into(context, self, out);
}

Error clone_dim_order_out(Context& context, const Tensor& self, bool,
                          std::optional<IntList> dim_order, Tensor& out) {
  ETX_TRY(check_dim_order(context, dim_order, out));
  return copy_same(context, self, out);
}

Error empty_dim_order_out(Context& context, IntList size, std::optional<IntList> dim_order,
                          Tensor& out) {
  ETX_TRY(check_dim_order(context, dim_order, out));
  Shape shape;
  for (const int64_t s : size) shape.push(s);
  return resize_out(context, out, shape);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::copy.out", copy_out, kAnyDtype),
    ETX_KERNEL("aten::copy_", copy_, kAnyDtype),
    ETX_KERNEL("aten::clone.out", clone_out, kAnyDtype),
    ETX_KERNEL("aten::_to_copy.out", to_copy_out, kAnyDtype),
    ETX_KERNEL("dim_order_ops::_to_dim_order_copy.out", to_dim_order_copy_out, kAnyDtype),
    ETX_KERNEL("dim_order_ops::_clone_dim_order.out", clone_dim_order_out, kAnyDtype),
    ETX_KERNEL("et_copy::_h2d_copy.out", copy_same, kAnyDtype),
    ETX_KERNEL("et_copy::_d2h_copy.out", copy_same, kAnyDtype),
    ETX_KERNEL("dim_order_ops::_empty_dim_order.out", empty_dim_order_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(copy_kernels, kRows);

}  // namespace etx::portable
