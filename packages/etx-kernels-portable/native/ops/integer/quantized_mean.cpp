// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/reduce/reduction.h"

namespace etx::portable {
namespace {

constexpr int64_t kColumns = 256;

struct Mean {
  Reduction plan;
  const int8_t* x;
  int8_t* y;
  int32_t start;
  float scale;
  Bounds bounds;
};

/// Results `from` on of those that lie next to each other, at `at` in input and output: row by row.
void mean_of_rows(const Mean& m, const int64_t* at, int64_t from) {
  int32_t sums[kColumns];
  const int64_t n = min(m.plan.kept.inner() - from, kColumns);
  for (int64_t i = 0; i < n; ++i) sums[i] = m.start;
  const int8_t* const x = m.x + at[0] + from;
  const int64_t inner = m.plan.folded.inner(), stride = m.plan.folded.stride[0][0];
  m.plan.folded.for_each_outer(0, m.plan.folded.outer(), [&](const int64_t* offsets) {
    for (int64_t i = 0; i < inner; ++i) integer().accumulate(x + offsets[0] + i * stride, sums, n);
  });
  integer().requantize(sums, m.scale, m.bounds, m.y + at[1] + from, n);
}

/// One result.
void mean_of_one(const Mean& m, const int64_t* at) {
  int32_t sum = m.start;
  const int64_t inner = m.plan.folded.inner(), stride = m.plan.folded.stride[0][0];
  m.plan.folded.for_each_outer(0, m.plan.folded.outer(), [&](const int64_t* offsets) {
    const int8_t* const x = m.x + at[0] + offsets[0];
    if (stride == 1) {
      for (int64_t i = 0; i < inner; ++i) sum += x[i];
    } else {
      for (int64_t i = 0; i < inner; ++i) sum += x[i * stride];
    }
  });
  integer().requantize(&sum, m.scale, m.bounds, m.y + at[1], 1);
}

void run(Context& context, const Mean& m) {
  const auto& kept = m.plan.kept;
  const bool by_row = kept.levels > 0 && kept.stride[0][0] == 1 && kept.stride[0][1] == 1;
  if (!by_row) {
    const int64_t grain = 1 + kThreadWork / (m.plan.count + 1);
    context.parallel_for(0, m.plan.results(), grain, [&](int64_t begin, int64_t end) {
      kept.for_each(begin, end, [&](const int64_t* at) { mean_of_one(m, at); });
    });
    return;
  }
  const int64_t pieces = divide_up(kept.inner(), kColumns);
  const int64_t grain = 1 + kThreadWork / (m.plan.count * min(kept.inner(), kColumns) + 1);
  context.parallel_for(0, kept.outer() * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kept.for_each_outer(i / pieces, i / pieces + 1,
                          [&](const int64_t* at) { mean_of_rows(m, at, i % pieces * kColumns); });
    }
  });
}

/// out = clamp(round(sum over dim of (input - zero point) * (scale / count)) + zero point).
Error quantized_mean_out(Context& context, const Tensor& input, IntList dim, bool keepdim,
                         double scale, int64_t input_zero_point, int64_t output_zero_point,
                         int64_t output_min, int64_t output_max, Tensor& out) {
  Mean m;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, m.bounds));
  ETX_TRY(read_scale(context, scale, m.scale));
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_CHECK(context, input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_TRY(plan_reduction(context, input, {dim, keepdim}, {&out, 1}, m.plan));
  if (out.numel() == 0) return Error::Ok;
  ETX_CHECK(context, m.plan.count > 0 && m.plan.count <= INT32_MAX / 256, InvalidArgument,
            "dim must name from 1 to 2^23 numbers, so that sums fit int32");
  if (context.is_loading()) return Error::Ok;
  m.x = input.const_data_ptr<int8_t>();
  m.y = out.mutable_data_ptr<int8_t>();
  m.start = static_cast<int32_t>(-input_zero_point * m.plan.count);
  m.scale /= static_cast<float>(m.plan.count);
  run(context, m);
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_mean.out", quantized_mean_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_mean_kernels, kRows);

}  // namespace etx::portable
