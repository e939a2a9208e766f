// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/shape.h"
#include "ops/create/generator.h"

namespace etx::portable {
namespace {

/// One number as elements of float32 have it, or the 53 bits of float64.
double uniform(Numbers& numbers, uint64_t index, int digits) {
  return digits > 32 ? numbers.uniform(index) : double{numbers.uniform(index, digits)};
}

double normal(Numbers& numbers, uint64_t index, int /*digits*/) { return numbers.normal(index); }

constexpr int64_t kGrain = 4096;

Error fill(Context& context, IntList size, double (*number)(Numbers&, uint64_t, int),
           const Tensor& out) {
  Shape shape;
  for (const int64_t item : size) shape.push(item);
  ETX_CHECK(context, is_floating(out.scalar_type()), NotSupported,
            "out must be of a floating dtype");
  ETX_TRY(resize_out(context, out, shape));
  const ScalarType type = out.scalar_type();
  const int digits = type == ScalarType::Double     ? 53
                     : type == ScalarType::Half     ? 11
                     : type == ScalarType::BFloat16 ? 8
                                                    : 24;
  const etx_random draw = context.next_draw();
  context.parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    Numbers numbers(draw);
    for (int64_t i = begin; i < end; ++i) {
      const double value = number(numbers, static_cast<uint64_t>(i), digits);
      cast(&value, ScalarType::Double, 1, mutable_element_ptr(out, i), type, 1);
    }
  });
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
