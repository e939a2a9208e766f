// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/pair_product.h"

#include <cstring>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"

namespace etx::portable {
namespace {

constexpr const char* kNoMemory = "not enough temporary memory to multiply";

}  // namespace

Error multiply_weight_pairs(Context& context, const Pairs& pairs, const void* x, const void* w,
                            const float* bias, float* y, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kRows = 12;
  const int64_t threads = useful_threads(context, Checked(m) * k * n);
  const int64_t panels = divide_up(m, kPairColumns), panel = kPairColumns * k;
  const int64_t stride = 2 * scratch_stride(k / 2), own = kRows * stride;
  ETX_ASSIGN(uint16_t* const memory,
             scratch<uint16_t>(context, panels * panel + threads * own, kNoMemory));
  context.parallel_for(0, panels, divide_up(panels, threads), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPairColumns, last = min(end * kPairColumns, m);
    isa().pack_transposed(static_cast<const float*>(x) + first * k / 2, k / 2, last - first, k / 2,
                          reinterpret_cast<float*>(memory + begin * panel));
  });
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(n, kRows, job, threads);
      uint16_t* const rows = memory + panels * panel + job * own;
      for (int64_t row = part.begin; row < part.end; row += kRows) {
        PairProduct p;
        p.rows = min(kRows, part.end - row);
        for (int64_t i = 0; i < p.rows; ++i) {
          std::memcpy(rows + i * stride, static_cast<const uint16_t*>(w) + (row + i) * k,
                      static_cast<size_t>(k) * sizeof(uint16_t));
        }
        p.a = rows, p.a_stride = stride, p.pairs = k / 2;
        p.bias = bias == nullptr ? nullptr : bias + row;
        p.c_stride = n, p.transposed = true;
        for (int64_t i = 0; i < panels; ++i) {
          p.columns = min(kPairColumns, m - i * kPairColumns);
          p.panel = memory + i * panel;
          p.c = y + i * kPairColumns * n + row;
          pairs.multiply(p);
        }
      }
    }
  });
  return Error::Ok;
}

Error multiply_pairs(Context& context, const Pairs& pairs, const void* a, const void* b,
                     const float* bias, float* c, int64_t batch, int64_t m, int64_t k, int64_t n) {
  const int64_t panels = divide_up(n, kPairColumns), panel = kPairColumns * k;
  const int64_t threads = min(useful_threads(context, Checked(batch) * m * k * n), batch * panels);
  ETX_ASSIGN(uint16_t* const memory, scratch<uint16_t>(context, threads * panel, kNoMemory));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(batch * panels, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t matrix = i / panels, first = i % panels * kPairColumns;
        PairProduct p;
        p.a = static_cast<const uint16_t*>(a) + matrix * m * k, p.a_stride = k;
        p.rows = m, p.pairs = k / 2, p.columns = min(kPairColumns, n - first);
        pairs.pack_rows(static_cast<const uint16_t*>(b) + matrix * k * n + first, n, p.columns,
                        p.pairs, memory + job * panel);
        p.panel = memory + job * panel;
        p.bias = bias;
        p.c = c + matrix * m * n + first, p.c_stride = n;
        pairs.multiply(p);
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
