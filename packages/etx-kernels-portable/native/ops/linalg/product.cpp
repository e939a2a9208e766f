// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/product.h"

#include <type_traits>

namespace etx::portable {
namespace {

/// The rows of x as panels of columns.
template <typename T>
struct Columns {
  static constexpr bool kFloat = std::is_same_v<T, float>;
  const T* x;
  int64_t m, k;
  T* panels;

  static int64_t width() { return kFloat ? isa().tile_columns : kPanel<T>; }
  int64_t count() const { return divide_up(m, width()); }
  int64_t elements() const { return count() * width() * k; }

  void pack(int64_t panel) const {
    const int64_t first = panel * width(), columns = min(width(), m - first);
    T* const to = panels + first * k;
    if constexpr (kFloat) {
      isa().pack_transposed(x + first * k, k, columns, k, to);
    } else {
      for (int64_t j = 0; j < width(); ++j) {
        const T* const from = x + (first + min(j, columns - 1)) * k;
        for (int64_t l = 0; l < k; ++l) to[l * width() + j] = from[l];
      }
    }
  }

  /// Columns of y, which has n, from those of `rows` rows of w, `stride` apart.
  void multiply(const T* w, int64_t stride, const T* bias, T* y, int64_t rows, int64_t n) const {
    if constexpr (kFloat) {
      Gemm g;
      g.a = w, g.a_stride = stride;
      g.b = panels, g.b_stride = width(), g.panel_stride = width() * k;
      g.bias = bias;
      g.c = y, g.c_stride = n, g.store = Gemm::Store::Transposed;
      g.depth = k, g.row_end = rows, g.column_end = m;
      g.column_block = column_block(4 * k);
      isa().gemm(g);
    } else {
      for (int64_t panel = 0; panel < count(); ++panel) {
        const int64_t first = panel * width();
        Product<T> p;
        p.a = w, p.a_stride = stride, p.rows = rows, p.depth = k;
        p.columns = min(width(), m - first);
        p.panel = panels + first * k;
        p.row_bias = bias;
        p.c = y + first * n, p.column_step = n, p.row_step = 1;
        multiply_panel(p);
      }
    }
  }
};

}  // namespace

template <typename T>
Error multiply_weight(Context& context, const T* x, const void* w, ScalarType dtype, ScalarType as,
                      const T* bias, T* y, int64_t m, int64_t k, int64_t n) {
  if (const DotsLoop<T> loop = few_rows<T>(dtype).dots; loop != nullptr && m <= dot_rows()) {
    Dots<T> d;
    d.x = x, d.x_stride = k, d.rows = m;
    d.w = w, d.w_stride = k, d.depth = k;
    d.bias = bias, d.y = y, d.y_stride = n;
    const int64_t threads = useful_threads(context, Checked(m) * k * n * kReadCost);
    context.parallel_for(0, n, divide_up(n, threads), [&](int64_t begin, int64_t end) {
      Dots<T> part = d;
      part.begin = begin, part.end = end;
      loop(part);
    });
    return Error::Ok;
  }
  constexpr int64_t kRows = 12;
  const int64_t threads = useful_threads(context, Checked(m) * k * n);
  const int64_t stride = scratch_stride(k), own = kRows * stride;
  Columns<T> columns{x, m, k, nullptr};
  ETX_ASSIGN(T* const memory, scratch<T>(context, columns.elements() + threads * own,
                                         "not enough temporary memory to multiply"));
  columns.panels = memory;
  T* const gathered = memory + columns.elements();
  const int64_t count = columns.count();
  context.parallel_for(0, count, divide_up(count, threads), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) columns.pack(panel);
  });
  const int64_t bytes = k * static_cast<int64_t>(element_size(dtype));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(n, kRows, job, threads);
      T* const rows = gathered + job * own;
      for (int64_t row = part.begin; row < part.end; row += kRows) {
        const int64_t taken = min(kRows, part.end - row);
        for (int64_t i = 0; i < taken; ++i) {
          cast(static_cast<const char*>(w) + (row + i) * bytes, dtype, 1, rows + i * stride, as, k);
        }
        columns.multiply(rows, stride, bias == nullptr ? nullptr : bias + row, y + row, taken, n);
      }
    }
  });
  return Error::Ok;
}

template Error multiply_weight(Context&, const float*, const void*, ScalarType, ScalarType,
                               const float*, float*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const double*, const void*, ScalarType, ScalarType,
                               const double*, double*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const uint16_t*, const void*, ScalarType, ScalarType,
                               const uint16_t*, uint16_t*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const uint32_t*, const void*, ScalarType, ScalarType,
                               const uint32_t*, uint32_t*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const uint64_t*, const void*, ScalarType, ScalarType,
                               const uint64_t*, uint64_t*, int64_t, int64_t, int64_t);

}  // namespace etx::portable
