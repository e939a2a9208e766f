// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PRODUCT_H_
#define ETX_PORTABLE_PRODUCT_H_

/// Products of float64 and integers, and of weights in fewer bits than they are multiplied in.

#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/row_loops.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {

/// The types in which numbers are multiplied: integers modulo 2^32 or 2^64, all but int64 in 2^32.
using Multiplied =
    DtypeList<DtypeTag<ScalarType::Float, float>, DtypeTag<ScalarType::Double, double>,
              DtypeTag<ScalarType::Int, uint32_t>, DtypeTag<ScalarType::Long, uint64_t>>;

constexpr ScalarType multiplied_as(ScalarType type) {
  const bool narrow = !kIsSmall && is_integral(type, true) && type != ScalarType::Long;
  return narrow ? ScalarType::Int : wide(type);
}

constexpr bool is_multiplied(ScalarType type) {
  if (type != ScalarType::Int) return is_computed(type);
  return !kIsSmall &&
         any_built(ScalarType::Byte, ScalarType::Char, ScalarType::Short, ScalarType::Int);
}

constexpr bool kHalvesBuilt = any_built(ScalarType::Half, ScalarType::BFloat16);

/// Multiplies `panels` panels; `fill(i, memory)` returns the i-th product, whose panel it may put
/// into `memory`, `depth` * kPanel<T> elements.
template <typename T, typename Fill>
Error multiply_panels(Context& context, int64_t panels, int64_t depth, Checked work,
                      const Fill& fill) {
  const int64_t threads = min(useful_threads(context, work), max<int64_t>(panels, 1));
  ETX_ASSIGN(T* const memory, scratch<T>(context, threads * depth * kPanel<T>,
                                         "not enough temporary memory to multiply"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(panels, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        multiply_panel(fill(i, memory + job * depth * kPanel<T>));
      }
    }
  });
  return Error::Ok;
}

/// c = a b for `batch` row-major matrices that follow each other.
template <typename T>
Error multiply_matrices(Context& context, const T* a, const T* b, T* c, int64_t batch, int64_t m,
                        int64_t k, int64_t n) {
  constexpr int64_t width = kPanel<T>;
  const int64_t panels = divide_up(n, width);
  const auto fill = [&](int64_t i, T* memory) {
    const int64_t matrix = i / panels, first = i % panels * width;
    const T* const from = b + matrix * k * n + first;
    Product<T> p;
    p.a = a + matrix * m * k, p.a_stride = k;
    p.rows = m, p.depth = k, p.columns = min(width, n - first);
    p.c = c + matrix * m * n + first, p.row_step = n;
    p.panel = memory;
    if (m <= 4 && p.columns == width) {
      p.panel = from, p.panel_stride = n;
      return p;
    }
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < width; ++j) {
        memory[l * width + j] = j < p.columns ? from[l * n + j] : T{0};
      }
    }
    return p;
  };
  return multiply_panels<T>(context, batch * panels, k, Checked(batch) * m * k * n, fill);
}

/// y = x w^T + bias, where w, n x k, lies in `dtype` and is converted by a few rows at a time.
template <typename T>
Error multiply_weight(Context& context, const T* x, const void* w, ScalarType dtype, ScalarType as,
                      const T* bias, T* y, int64_t m, int64_t k, int64_t n);

extern template Error multiply_weight(Context&, const float*, const void*, ScalarType, ScalarType,
                                      const float*, float*, int64_t, int64_t, int64_t);
extern template Error multiply_weight(Context&, const double*, const void*, ScalarType, ScalarType,
                                      const double*, double*, int64_t, int64_t, int64_t);
extern template Error multiply_weight(Context&, const uint32_t*, const void*, ScalarType,
                                      ScalarType, const uint32_t*, uint32_t*, int64_t, int64_t,
                                      int64_t);
extern template Error multiply_weight(Context&, const uint64_t*, const void*, ScalarType,
                                      ScalarType, const uint64_t*, uint64_t*, int64_t, int64_t,
                                      int64_t);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PRODUCT_H_
