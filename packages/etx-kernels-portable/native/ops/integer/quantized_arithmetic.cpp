// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/map.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

template <auto Integer::* member>
void loop(const void* user, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  (integer().*member)(static_cast<const int8_t*>(in[0]), static_cast<const int8_t*>(in[1]), scalars,
                      *static_cast<const Pair*>(user), static_cast<int8_t*>(out), n);
}

Error run(Context& context, const Tensor& a, const Tensor& b, const Pair& pair, Loop loop,
          const Tensor& out) {
  ETX_CHECK(context,
            a.scalar_type() == ScalarType::Char && b.scalar_type() == ScalarType::Char &&
                out.scalar_type() == ScalarType::Char,
            InvalidArgument, "a, b and out must be int8");
  if (context.is_loading()) {
    Shape shape;
    if (!context.has_sizes(a) || !context.has_sizes(b)) return Error::Ok;
    ETX_TRY(broadcast_shape(context, a, b, shape, "a and b must have sizes that broadcast"));
    return set_sizes(context, {}, out, shape);
  }
  const Operand operands[] = {{a, ScalarType::Char}, {b, ScalarType::Char}};
  return map(context, operands, out, {loop, ScalarType::Char, &pair, 131072});
}

Error read_zero_points(Context& context, int64_t a_zero_point, int64_t b_zero_point, Pair& pair) {
  ETX_TRY(check_zero_point(context, a_zero_point, "a_zero_point must be within int8, -128 to 127"));
  ETX_TRY(check_zero_point(context, b_zero_point, "b_zero_point must be within int8, -128 to 127"));
  pair.a_zero = static_cast<int32_t>(a_zero_point);
  pair.b_zero = static_cast<int32_t>(b_zero_point);
  return Error::Ok;
}

/// out = clamp(round((a - a_zero_point) a_scale + (b - b_zero_point) b_scale) + zero point).
Error quantized_add_out(Context& context, const Tensor& a, const Tensor& b, double a_scale,
                        int64_t a_zero_point, double b_scale, int64_t b_zero_point,
                        int64_t output_zero_point, int64_t output_min, int64_t output_max,
                        Tensor& out) {
  Pair pair;
  ETX_TRY(read_zero_points(context, a_zero_point, b_zero_point, pair));
  ETX_TRY(read_scale(context, a_scale, false,
                     "a_scale must be finite and greater than 0 as float32", pair.a_scale));
  ETX_TRY(read_scale(context, b_scale, true, "b_scale must be finite and not 0 as float32",
                     pair.b_scale));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, pair.bounds));
  return run(context, a, b, pair, loop<&Integer::add>, out);
}

/// out = clamp(round((a - a_zero_point) (b - b_zero_point) scale) + zero point).
Error quantized_mul_out(Context& context, const Tensor& a, const Tensor& b, double scale,
                        int64_t a_zero_point, int64_t b_zero_point, int64_t output_zero_point,
                        int64_t output_min, int64_t output_max, Tensor& out) {
  Pair pair;
  ETX_TRY(read_zero_points(context, a_zero_point, b_zero_point, pair));
  ETX_TRY(read_scale(context, scale, pair.a_scale));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, pair.bounds));
  return run(context, a, b, pair, loop<&Integer::mul>, out);
}

constexpr uint64_t kTaken = dtype_bit(ScalarType::Char) | kInPlace | kChecksAtLoad;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_add.out", quantized_add_out, kTaken),
    ETX_KERNEL("etx::quantized_mul.out", quantized_mul_out, kTaken),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_arithmetic_kernels, kRows);

}  // namespace etx::portable
