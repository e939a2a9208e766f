// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/shape.h"
#include "ops/create/generator.h"

namespace etx::portable {
namespace {

/// Box-Muller on numbers 2k and 2k + 1.
float normal(uint64_t k, int /*digits*/) {
  constexpr double kTwoPi = 6.283185307179586;
  const double u = static_cast<double>((random_bits(2 * k) >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random_bits(2 * k + 1) >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v));
}

Error fill(Context& context, IntList size, float (*draw)(uint64_t, int), const Tensor& out) {
  Shape shape;
  for (const int64_t item : size) shape.push(item);
  ETX_CHECK(context, is_floating(out.scalar_type()), NotSupported,
            "out must be of a floating dtype");
  ETX_TRY(resize_out(context, out, shape));
  const int digits = out.scalar_type() == ScalarType::Half       ? 11
                     : out.scalar_type() == ScalarType::BFloat16 ? 8
                                                                 : 24;
  const uint64_t count = static_cast<uint64_t>(out.numel());
  const uint64_t first = take_numbers(2 * count) / 2;
  for (uint64_t i = 0; i < count; ++i) {
    const float value = draw(first + i, digits);
    cast(&value, ScalarType::Float, 1, mutable_element_ptr(out, static_cast<int64_t>(i)),
         out.scalar_type(), 1);
  }
  return Error::Ok;
}

Error rand_out(Context& context, IntList size, Tensor& out) {
  return fill(context, size, uniform, out);
}

Error randn_out(Context& context, IntList size, Tensor& out) {
  return fill(context, size, normal, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::rand.out", rand_out, Floating::bits),
    ETX_KERNEL("aten::randn.out", randn_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(random_kernels, kRows);

}  // namespace etx::portable
