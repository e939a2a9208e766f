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
  const int64_t threads =
      min(useful_threads(context, Checked(batch) * m * k * n * read_cost(m)), batch * panels);
  const int64_t most = min(panels, divide_up(batch * panels, threads));
  const int64_t block = min(column_block(2 * k) / width, most);
  ETX_ASSIGN(float* const memory, scratch<float>(context, threads * block * panel,
                                                 "not enough temporary memory to multiply"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(batch * panels, 1, job, threads);
      for (int64_t i = part.begin, count = 0; i < part.end; i += count) {
        const int64_t matrix = i / panels, first = i % panels * width;
        count = min(block, min(part.end - i, panels - i % panels));
        Gemm g;
        Rows(static_cast<const uint16_t*>(a) + matrix * m * k, true).set(g);
        g.a_stride = g.depth = k / 2;
        g.row_end = m, g.column_end = min(count * width, n - first);
        g.column_block = count * width, g.panel_stride = panel;
        float* const packed = memory + job * block * panel;
        g.b = packed, g.b_stride = width;
        const uint16_t* const from = static_cast<const uint16_t*>(b) + matrix * k * n + first;
        for (int64_t j = 0; j < g.column_end; j += width) {
          pairs.pack_rows(from + j, n, min(width, g.column_end - j), g.depth,
                          packed + j / width * panel);
        }
        g.bias = bias;
        g.c = c + matrix * m * n + first, g.c_stride = n;
        pairs.gemm(g);
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
