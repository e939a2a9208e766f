// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/dotted_columns.h"

#include "core/min_max.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

int64_t dotted(int64_t m, int64_t depth, int64_t n) {
  const int64_t rest = n % isa().vector_floats;
  const bool few = 2 * rest <= isa().vector_floats && (!kIsSmall || rest < n);
  return few && m >= isa().tile_rows && depth >= 2 * isa().vector_floats ? rest : 0;
}

void DottedColumns::pack(const float* b) const {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < count; ++j) memory[j * depth + k] = b[(k + 1) * n - count + j];
  }
}

void DottedColumns::run(int64_t begin, int64_t end) const {
  if (count == 0) return;
  float* const sums = memory + count * depth;
  Gemv d;
  d.x = memory, d.x_stride = depth, d.rows = count;
  d.w = a, d.w_stride = depth, d.depth = depth;
  d.begin = begin, d.end = end;
  d.bias = bias, d.y = sums, d.y_stride = m;
  isa().gemv(d);
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < count; ++j) c[(i + 1) * n - count + j] = sums[j * m + i];
  }
}

void DottedColumns::run_beside(const Gemm& g, int64_t begin, int64_t end) const {
  const int64_t rows = g.row_end - g.row_begin;
  const bool at_once = count == 0 || g.column_end - g.column_begin > g.column_block;
  const int64_t tiles = at_once ? 1 : divide_up(max<int64_t>(rows, 1), isa().tile_rows);
  const int64_t step = divide_up(rows, tiles);
  Gemm few = g;
  for (int64_t row = g.row_begin; row < g.row_end; row = few.row_end) {
    few.row_begin = row, few.row_end = min(row + step, g.row_end);
    run_loop(few);
    const int64_t first = max(row, begin), last = min(few.row_end, end);
    if (first < last) run(first, last);
  }
}

}  // namespace etx::portable
