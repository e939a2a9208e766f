// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/dotted_columns.h"

#include <cstring>

#include "core/min_max.h"
#include "ops/linalg/gemm.h"
#include "selection.h"

namespace etx::portable {

int64_t dotted(int64_t m, int64_t depth, int64_t n) {
  const int64_t rest = n % isa().vector_floats;
  const bool few = 2 * rest <= isa().vector_floats && (!kIsSmall || rest < n);
  return few && m >= isa().tile_rows && depth >= 2 * isa().vector_floats ? rest : 0;
}

void DottedColumns::put(int64_t j, int64_t k, float element) const {
  float* const column = memory + j * length();
  if (!of_pairs) {
    column[k] = element;
    return;
  }
  uint32_t both;
  memcpy(&both, &element, sizeof both);
  const uint32_t halves[] = {both << 16, both & 0xffff0000u};
  memcpy(column + 2 * k, halves, sizeof halves);
}

void DottedColumns::pack(const float* b) const {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < count; ++j) put(j, k, b[(k + 1) * n - count + j]);
  }
}

void DottedColumns::run(int64_t begin, int64_t end) const {
  if (count == 0) return;
  float* const sums = memory + count * length();
  Gemv d;
  d.x = memory, d.x_stride = length(), d.rows = count;
  d.w = a, d.w_stride = length(), d.depth = length();
  d.begin = begin, d.end = end;
  d.bias = bias, d.y = sums, d.y_stride = m;
  if constexpr (!kIsSmall && is_built(ScalarType::BFloat16)) {
    of_pairs ? isa().dots_bfloat16(d) : isa().gemv(d);
  } else {
    isa().gemv(d);
  }
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < count; ++j) c[(i + 1) * n - count + j] = sums[j * m + i];
  }
}

void DottedColumns::run_beside(const Gemm& g, int64_t begin, int64_t end) const {
  portable::run_beside(g, count == 0, begin, end,
                       [&](int64_t first, int64_t last) { run(first, last); });
}

}  // namespace etx::portable
