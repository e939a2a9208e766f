// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/product.h"

#include <type_traits>

namespace etx::portable {
namespace {

/// The rows of x as panels of columns, or as they lie where there are few.
template <typename T>
struct Columns {
  static constexpr bool kFloat = std::is_same_v<T, float>;
  const T* x;
  int64_t m, k;
  T* panels;

  bool are_few() const { return m <= (kFloat ? dot_rows() : 3); }
  static int64_t width() { return kFloat ? isa().tile_columns : kPanel<T>; }
  int64_t count() const { return are_few() ? 0 : divide_up(m, width()); }
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

  /// Columns `row` to `row` + `rows` of y, which has n.
  void multiply(const T* w, const T* bias, T* y, int64_t rows, int64_t n) const {
    if constexpr (kFloat) {
      if (are_few()) {
        Gemv d;
        d.x = x, d.x_stride = k, d.rows = m;
        d.w = w, d.w_stride = k, d.depth = k, d.end = rows;
        d.bias = bias, d.y = y, d.y_stride = n;
        return isa().gemv(d);
      }
      Gemm g;
      g.a = w, g.a_stride = k;
      g.b = panels, g.b_stride = width(), g.panel_stride = width() * k;
      g.bias = bias;
      g.c = y, g.c_stride = n, g.store = Gemm::Store::Transposed;
      g.depth = k, g.row_end = rows, g.column_end = m;
      g.column_block = column_block(4 * k);
      isa().gemm(g);
    } else if (are_few()) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          y[i * n + j] = dot(x + i * k, w + j * k, k) + (bias == nullptr ? T{0} : bias[j]);
        }
      }
    } else {
      for (int64_t panel = 0; panel < count(); ++panel) {
        const int64_t first = panel * width();
        Product<T> p;
        p.a = w, p.a_stride = k, p.rows = rows, p.depth = k, p.columns = min(width(), m - first);
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
  constexpr int64_t kBlockElements = 8192, kFewRows = 12;
  const int64_t threads = useful_threads(context, Checked(m) * k * n);
  const bool converts = dtype != as;
  const int64_t block = max(kFewRows, kBlockElements / max<int64_t>(k, 1) / kFewRows * kFewRows);
  const int64_t own = converts ? min(block, n) * k : 0;
  Columns<T> columns{x, m, k, nullptr};
  ETX_ASSIGN(T* const memory, scratch<T>(context, columns.elements() + threads * own,
                                         "not enough temporary memory to multiply"));
  columns.panels = memory;
  T* const rows = memory + columns.elements();
  const int64_t count = columns.count();
  if (count > 0) {
    context.parallel_for(0, count, divide_up(count, threads), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) columns.pack(panel);
    });
  }
  const int64_t stride = k * static_cast<int64_t>(element_size(dtype));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(n, kFewRows, job, threads);
      for (int64_t row = part.begin; row < part.end; row += block) {
        const int64_t taken = min(block, part.end - row);
        const char* const from = static_cast<const char*>(w) + row * stride;
        const T* now = reinterpret_cast<const T*>(from);
        if (converts) {
          cast(from, dtype, 1, rows + job * own, as, taken * k);
          now = rows + job * own;
        }
        columns.multiply(now, bias == nullptr ? nullptr : bias + row, y + row, taken, n);
      }
    }
  });
  return Error::Ok;
}

template Error multiply_weight(Context&, const float*, const void*, ScalarType, ScalarType,
                               const float*, float*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const double*, const void*, ScalarType, ScalarType,
                               const double*, double*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const uint32_t*, const void*, ScalarType, ScalarType,
                               const uint32_t*, uint32_t*, int64_t, int64_t, int64_t);
template Error multiply_weight(Context&, const uint64_t*, const void*, ScalarType, ScalarType,
                               const uint64_t*, uint64_t*, int64_t, int64_t, int64_t);

}  // namespace etx::portable
