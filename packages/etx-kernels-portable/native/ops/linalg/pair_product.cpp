// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/pair_product.h"

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

Error multiply_weight_pairs(Context& context, const void* x, const void* w, const float* bias,
                            float* y, int64_t m, int64_t k, int64_t n) {
  const Rows rows(static_cast<const uint16_t*>(w), true);
  return multiply_transposed(context, static_cast<const float*>(x), rows, bias, y, m, k / 2, n);
}

Error multiply_pairs(Context& context, const Pairs& pairs, const void* a, const void* b,
                     const float* bias, float* c, int64_t batch, int64_t m, int64_t k, int64_t n) {
  const int64_t width = isa().tile_columns, panels = divide_up(n, width), panel = width * k / 2;
  const int64_t threads = min(useful_threads(context, Checked(batch) * m * k * n), batch * panels);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * panel, "not enough temporary memory to multiply"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(batch * panels, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t matrix = i / panels, first = i % panels * width;
        Gemm g;
        Rows(static_cast<const uint16_t*>(a) + matrix * m * k, true).set(g);
        g.a_stride = g.depth = k / 2;
        g.row_end = m, g.column_end = min(width, n - first), g.column_block = width;
        pairs.pack_rows(static_cast<const uint16_t*>(b) + matrix * k * n + first, n, g.column_end,
                        g.depth, memory + job * panel);
        g.b = memory + job * panel, g.b_stride = width;
        g.bias = bias;
        g.c = c + matrix * m * n + first, g.c_stride = n;
        pairs.gemm(g);
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
