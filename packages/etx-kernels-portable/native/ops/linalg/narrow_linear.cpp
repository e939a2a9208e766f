// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/linalg/gemm.h"
#include "ops/linalg/pair_product.h"
#include "ops/linalg/product.h"

namespace etx::portable {
namespace {

Error check(Context& context, const Tensor& input, const Tensor& weight,
            const std::optional<Tensor>& bias, const Tensor& out) {
  ETX_CHECK(context,
            input.scalar_type() == ScalarType::Float && out.scalar_type() == ScalarType::Float &&
                (!bias.has_value() || bias->scalar_type() == ScalarType::Float),
            InvalidArgument, "input, bias and out must be float32");
  ETX_CHECK(context, weight.scalar_type() == ScalarType::BFloat16, InvalidArgument,
            "weight must be bfloat16");
  ETX_CHECK(context, input.dim() >= 1 && weight.dim() == 2 && input.size(-1) == weight.size(1),
            InvalidArgument, "weight must be (out, in), in the last dimension of input");
  ETX_CHECK(context, !bias.has_value() || (bias->dim() == 1 && bias->numel() == weight.size(0)),
            InvalidArgument, "bias must have one element per row of weight");
  return Error::Ok;
}

/// out = input weight^T + bias, where weight is bfloat16, which input may be rounded to.
Error narrow_linear_out(Context& context, const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, Tensor& out) {
  ETX_TRY(check(context, input, weight, bias, out));
  const int64_t k = input.size(-1), n = weight.size(0);
  int64_t m = 1;
  Shape shape;
  for (ssize_t d = 0; d + 1 < input.dim(); ++d) {
    shape.push(input.size(d));
    m *= input.size(d);
  }
  shape.push(n);
  ETX_TRY(resize_out(context, out, shape));
  const float *x, *b;
  const uint16_t* w;
  ResultOperand result;
  ETX_TRY(read_operand(context, input, ScalarType::Float, x));
  ETX_TRY(read_operand(context, weight, ScalarType::BFloat16, w));
  ETX_TRY(read_operand(context, bias, ScalarType::Float, b));
  ETX_TRY(result.prepare(context, out, ScalarType::Float));
  if (m == 0 || n == 0) return result.finish(context, out);
  if (m > dot_rows() && pairs_for(ScalarType::BFloat16, k) != nullptr) {
    ETX_ASSIGN(uint16_t* const narrow,
               scratch<uint16_t>(context, m * k, "no temporary memory for input in bfloat16"));
    const int64_t threads = useful_threads(context, Checked(m) * k * n);
    context.parallel_for(0, m, divide_up(m, threads), [&](int64_t begin, int64_t end) {
      const auto count = static_cast<size_t>((end - begin) * k);
      isa().to_bfloat16(x + begin * k, narrow + begin * k, count);
    });
    ETX_TRY(multiply_weight_pairs(context, narrow, w, b, result.data<float>(), m, k, n));
  } else {
    ETX_TRY(multiply_weight(context, x, w, ScalarType::BFloat16, ScalarType::Float, b,
                            result.data<float>(), m, k, n));
  }
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::narrow_linear.out", narrow_linear_out, dtype_bit(ScalarType::Float)),
};

}  // namespace

ETX_KERNEL_TABLE(narrow_linear_kernels, kRows);

}  // namespace etx::portable
