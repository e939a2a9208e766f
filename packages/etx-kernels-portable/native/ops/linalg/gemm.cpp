// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/gemm.h"

#include "core/min_max.h"
#include "core/scratch.h"
#include "isa/pairs.h"
#include "ops/linalg/dotted_columns.h"
#include "selection.h"

namespace etx::portable {
namespace {

/// One product with B read in place, except the last, partial panel, which would be read beyond
/// its end and is packed into `tail`.
struct InPlaceProduct {
  int64_t m, k, n;  ///< Rows of B are n apart.
  int64_t columns;  ///< Those that are multiplied, the first ones.
  float* tail;

  static int64_t tail_floats(int64_t k, int64_t columns) {
    return columns % isa().tile_columns == 0 ? 0 : k * isa().tile_columns;
  }

  Gemm gemm(const Rows& a, const float* b, float* c) const {
    Gemm g;
    a.set(g);
    g.a_stride = k;
    g.b = b, g.b_stride = n, g.panel_stride = isa().tile_columns;
    g.tail = tail;
    g.c = c, g.c_stride = n;
    g.depth = k, g.row_end = m, g.column_end = columns;
    g.column_block = column_block(4 * k);
    return g;
  }

  void pack_tail(const float* b) const {
    const int64_t rest = columns % isa().tile_columns;
    if (rest != 0) isa().pack_rows(b + columns - rest, n, rest, k, tail);
  }
};

/// True where a product has so few columns that each is a dot product with the rows of A.
bool are_few(int64_t m, int64_t k, int64_t n) { return !kIsSmall && dotted(m, k, n) == n; }

/// True where B is worth being packed: it is passed over again and again, and what lies at
/// multiples of 1 KB drives each other out of the cache.
bool should_pack(int64_t m, int64_t k, int64_t n) {
  const bool collides = n % 256 == 0 && k >= 64 && m > 64;
  return (m > 2 * isa().tile_rows && k > 256) || (!kIsSmall && collides);
}

/// The same where a block is packed just before it is used: rows of B that begin within a cache
/// line take two, and those of a page each take as many entries of the table of pages.
bool should_pack_blocks(int64_t m, int64_t k, int64_t n) {
  const bool is_spread = n % isa().tile_columns != 0 || n >= 1024;
  return has_small_tiles() && m > 64 && k >= 64 && is_spread;
}

/// Floats for the rows of A that one thread gathers.
int64_t gathered_alone(int64_t m, int64_t k, int64_t n) {
  return should_gather(k, n) && m > 1 ? gemm_scratch(k, 1) : 0;
}

/// Parts of the work, so that a thread that comes late finds less of it.
int64_t jobs_of(int64_t threads) { return threads > 1 ? 2 * threads : 1; }

/// Rows that are not divided among threads.
int64_t rows_apart(const Gemm& g) { return g.of_pairs && g.row_end >= 128 ? 16 : 1; }

bool is_by_columns(int64_t columns, int64_t rows, int64_t threads) {
  return columns >= 8 * threads * isa().tile_columns || rows < 2 * threads;
}

/// Runs `run(part, is_last, job)`, where the rows of the last are to be multiplied with the dotted
/// columns, too: not worth waking threads for once more. `g.scratch`, if any, is that of
/// `jobs_of(threads)`.
template <class Run>
void run_parts(Context& context, const Gemm& g, int64_t threads, const Run& run) {
  const int64_t jobs = jobs_of(threads), columns = g.column_end, rows = g.row_end;
  const bool by_columns = is_by_columns(columns, rows, threads);
  context.parallel_for(0, jobs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      Gemm part = g;
      if (g.scratch != nullptr) part.scratch = g.scratch + gemm_scratch(g.depth, job);
      if (by_columns) {
        const Part p(columns, isa().tile_columns, job, jobs);
        part.column_begin = p.begin, part.column_end = p.end;
      } else {
        const Part p(rows, rows_apart(g), job, jobs);
        part.row_begin = p.begin, part.row_end = p.end;
      }
      run(part, !by_columns || job == jobs - 1, job);
    }
  });
}

}  // namespace

void run_loop(const Gemm& g) {
  if constexpr (!kIsSmall && is_built(ScalarType::BFloat16)) {
    if (g.of_pairs) return pairs()->gemm(g);
  }
  isa().gemm(g);
}

bool Rows::in_tiles() const {
  if constexpr (!kIsSmall && is_built(ScalarType::BFloat16)) {
    return of_pairs && pairs()->in_tiles;
  } else {
    return false;
  }
}

bool should_gather(int64_t depth, int64_t columns) {
  if (has_small_tiles()) return false;
  const int64_t panels = columns / isa().tile_columns;
  return depth >= 64 && panels > (depth % 1024 == 0 ? 0 : 8);
}

void run_gemm(Context& context, const Gemm& g, int64_t threads) {
  if (threads <= 1) {
    run_loop(g);
    return;
  }
  const int64_t columns = g.column_end - g.column_begin, rows = g.row_end - g.row_begin;
  const bool by_columns = is_by_columns(columns, rows, threads);
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      Gemm part = g;
      if (g.scratch != nullptr) part.scratch = g.scratch + gemm_scratch(g.depth, job);
      if (by_columns) {
        const Part p(columns, isa().tile_columns, job, threads);
        part.column_begin = g.column_begin + p.begin, part.column_end = g.column_begin + p.end;
      } else {
        const Part p(rows, rows_apart(g), job, threads);
        part.row_begin = g.row_begin + p.begin, part.row_end = g.row_begin + p.end;
      }
      run_loop(part);
    }
  });
}

Error multiply(Context& context, const Rows& a, const float* b, const float* bias, float* c,
               int64_t m, int64_t k, int64_t n) {
  if (n == 1 && !a.is_narrow()) return multiply_transposed(context, b, a, bias, c, 1, k, m);
  const int64_t threads = useful_threads(context, Checked(m) * k * n * read_cost(m));
  const int64_t behind = a.halves != nullptr || a.in_tiles() ? 0 : dotted(m, k, n);
  DottedColumns dots{m, k, n, behind, a.of_pairs, a.floats, bias, c, nullptr};
  InPlaceProduct product{m, k, n, n - dots.count, nullptr};
  const bool packs = should_pack(m, k, n) || should_pack_blocks(m, k, n);
  const int64_t panels = divide_up(product.columns, isa().tile_columns);
  // A block that is packed just before it is used is still in the cache.
  const int64_t jobs = jobs_of(threads);
  const bool by_blocks =
      packs && has_small_tiles() && (threads == 1 || is_by_columns(product.columns, m, threads));
  const int64_t block = min(column_block(4 * k), divide_up(panels, jobs) * isa().tile_columns);
  const int64_t packed = by_blocks ? jobs * block * k
                         : packs   ? panels * isa().tile_columns * k
                                   : InPlaceProduct::tail_floats(k, product.columns);
  const bool gather = a.halves != nullptr || (should_gather(k, n) && m > 1);
  const int64_t gathered = gather ? gemm_scratch(k, jobs) : 0;
  ETX_ASSIGN(float* const temp, scratch<float>(context, packed + gathered + dots.floats(),
                                               "not enough temporary memory to multiply"));
  if (!packs) product.tail = temp;
  Gemm g = product.gemm(a, b, c);
  g.bias = bias;
  dots.memory = temp + packed + gathered;
  if (gather) g.scratch = temp + packed;
  dots.pack(b);
  if (packs && !by_blocks) {
    context.parallel_for(0, panels, divide_up(panels, threads), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * isa().tile_columns, last = end * isa().tile_columns;
      isa().pack_rows(b + first, n, min(last, product.columns) - first, k, temp + first * k);
    });
  }
  if (packs) {
    g.b = temp, g.b_stride = isa().tile_columns, g.panel_stride = isa().tile_columns * k;
  } else {
    product.pack_tail(b);
  }
  run_parts(context, g, threads, [&](Gemm part, bool is_last, int64_t job) {
    if (!by_blocks) return dots.run_beside(part, part.row_begin, is_last ? part.row_end : 0);
    float* const panels_of_block = temp + job * block * k;
    int64_t begin = part.column_begin;
    const int64_t last = part.column_end;
    part.b = panels_of_block, part.column_begin = 0;
    do {
      part.column_end = max<int64_t>(min(block, last - begin), 0);
      isa().pack_rows(b + begin, n, part.column_end, k, panels_of_block);
      part.c = c + begin;
      begin += block;
      dots.run_beside(part, 0, is_last && begin >= last ? m : 0);
    } while (begin < last);
  });
  return Error::Ok;
}

int64_t part_floats(int64_t k, int64_t columns, int64_t threads) {
  const int64_t gathered = should_gather(k, columns) ? gemm_scratch(k, threads) : 0;
  return InPlaceProduct::tail_floats(k, columns) + gathered;
}

void multiply_part(Context& context, const float* a, const float* b, int64_t stride, float* c,
                   int64_t m, int64_t k, int64_t columns, Gemm::Store store, int64_t threads,
                   float* memory) {
  const InPlaceProduct product{m, k, stride, columns, memory};
  Gemm g = product.gemm(a, b, c);
  g.store = store;
  g.c_stride = store == Gemm::Store::Transposed ? m : columns;
  if (should_gather(k, columns)) g.scratch = memory + InPlaceProduct::tail_floats(k, columns);
  product.pack_tail(b);
  run_gemm(context, g, threads);
}

int64_t alone_floats(int64_t m, int64_t k, int64_t n) {
  if (are_few(m, k, n)) return n * (k + m);
  return InPlaceProduct::tail_floats(k, n) + gathered_alone(m, k, n);
}

void multiply_alone(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                    float* memory) {
  if (are_few(m, k, n)) {
    const DottedColumns dots{m, k, n, n, false, a, nullptr, c, memory};
    dots.pack(b);
    dots.run(0, m);
    return;
  }
  const InPlaceProduct product{m, k, n, n, memory};
  Gemm g = product.gemm(a, b, c);
  if (gathered_alone(m, k, n) != 0) g.scratch = memory + InPlaceProduct::tail_floats(k, n);
  product.pack_tail(b);
  isa().gemm(g);
}

Error multiply_batch(Context& context, const float* a, const float* b, float* c, int64_t batch,
                     int64_t m, int64_t k, int64_t n) {
  const int64_t threads = useful_threads(context, Checked(batch) * m * k * n * read_cost(m));
  if (batch < threads || (m > 64 && should_pack(m, k, n))) {
    for (int64_t i = 0; i < batch; ++i) {
      ETX_TRY(multiply(context, a + i * m * k, b + i * k * n, nullptr, c + i * m * n, m, k, n));
    }
    return Error::Ok;
  }
  const int64_t floats = alone_floats(m, k, n);
  ETX_ASSIGN(float* const temp,
             scratch<float>(context, threads * floats, "not enough temporary memory to multiply"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(batch, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        multiply_alone(a + i * m * k, b + i * k * n, c + i * m * n, m, k, n, temp + job * floats);
      }
    }
  });
  return Error::Ok;
}

namespace {

/// y = x w^T + bias: the first `main` rows of one operand, packed as columns, are multiplied by
/// rows of the other, the rest are dot products with them.
struct TransposedProduct {
  const float* x;
  Rows w;
  const float* bias;
  float* y;
  int64_t m, k, n;
  bool is_by_rows;
  int64_t rest, main;

  TransposedProduct(const float* rows, const Rows& weights, const float* added, float* result,
                    int64_t rows_of_x, int64_t depth, int64_t rows_of_w)
      : x(rows), w(weights), bias(added), y(result), m(rows_of_x), k(depth), n(rows_of_w) {
    // So short sums cost less than to turn what comes of them.
    constexpr int64_t kShort = 16;
    is_by_rows = !w.is_narrow() && m > dot_rows() && (n <= m || k <= kShort);
    const int64_t few = m <= dot_rows() ? m : dotted(lines(), k, columns());
    rest = w.is_narrow() ? 0 : few, main = columns() - rest;
  }

  /// Else x, and what is multiplied is the transpose of y.
  bool packs_w() const { return !kIsSmall && is_by_rows; }
  int64_t columns() const { return packs_w() ? n : m; }
  /// Rows that all of these are multiplied by.
  int64_t lines() const { return packs_w() ? m : n; }
  int64_t panels() const { return divide_up(main, isa().tile_columns); }
  int64_t packed() const { return panels() * isa().tile_columns * (packs_w() ? k + 1 : k); }
  bool gathers() const { return w.halves != nullptr || should_gather(k, columns()); }

  void dots(int64_t begin, int64_t end) const {
    if (rest == 0) return;
    Gemv d;
    d.x_stride = d.w_stride = d.depth = k, d.y_stride = n;
    if (!packs_w()) {
      d.x = x + main * k, d.rows = rest;
      d.w = w.floats, d.begin = begin, d.end = end;
      d.bias = bias, d.y = y + main * n;
      return isa().gemv(d);
    }
    constexpr int64_t kNear = 8;
    d.w = w.floats + main * k, d.end = rest;
    d.bias = bias == nullptr ? nullptr : bias + main;
    for (int64_t row = begin; row < end; row += kNear) {
      d.x = x + row * k, d.rows = min(kNear, end - row), d.y = y + row * n + main;
      isa().gemv(d);
    }
  }

  void pack(int64_t begin, int64_t end, float* to) const {
    const int64_t first = begin * isa().tile_columns, last = end * isa().tile_columns;
    const float* const from = packs_w() ? w.floats : x;
    isa().pack_transposed(from + first * k, k, min(last, main) - first, k, to + first * k);
    if (!packs_w() || bias == nullptr) return;
    float* const added = to + panels() * isa().tile_columns * k;
    for (int64_t i = first; i < last; ++i) added[i] = bias[min(i, main - 1)];
  }

  Gemm gemm(const float* packed_columns) const {
    Gemm g;
    g.a_stride = g.depth = k;
    g.b = packed_columns, g.b_stride = isa().tile_columns;
    g.panel_stride = isa().tile_columns * k;
    g.c = y, g.c_stride = n;
    g.row_end = lines(), g.column_end = main;
    g.column_block = column_block(4 * k);
    if (packs_w()) {
      g.a = x;
      if (bias != nullptr) g.column_bias = packed_columns + panels() * g.panel_stride;
    } else {
      w.set(g);
      g.bias = bias, g.store = Gemm::Store::Transposed;
    }
    return g;
  }

  /// Floats of memory of `run_alone`.
  int64_t floats() const { return main == 0 ? 0 : packed() + (gathers() ? gemm_scratch(k, 1) : 0); }

  void run(const Gemm& g, bool with_dots) const {
    const auto beside = [&](int64_t begin, int64_t end) { dots(begin, end); };
    if (packs_w()) return run_beside(g, rest == 0, 0, with_dots ? lines() : 0, beside);
    run_loop(g);
    if (with_dots) dots(g.row_begin, g.row_end);
  }

  /// All of it on the caller's thread.
  void run_alone(float* memory) const {
    if (main == 0) return dots(0, lines());
    pack(0, panels(), memory);
    Gemm g = gemm(memory);
    if (gathers()) g.scratch = memory + packed();
    run(g, true);
  }
};

}  // namespace

Error multiply_transposed(Context& context, const float* x, const Rows& w, const float* bias,
                          float* y, int64_t m, int64_t k, int64_t n) {
  const TransposedProduct product(x, w, bias, y, m, k, n);
  const int64_t cost = product.main == 0 ? kReadCost : 1;
  const int64_t threads = useful_threads(context, Checked(m) * k * n * cost);
  const auto dots = [&](int64_t begin, int64_t end) { product.dots(begin, end); };
  if (product.main == 0) {
    context.parallel_for(0, product.lines(), divide_up(product.lines(), threads), dots);
    return Error::Ok;
  }
  const int64_t panels = product.panels();
  const int64_t gathered = product.gathers() ? gemm_scratch(k, jobs_of(threads)) : 0;
  ETX_ASSIGN(float* const packed, scratch<float>(context, product.packed() + gathered,
                                                 "not enough temporary memory to pack input"));
  context.parallel_for(0, panels, divide_up(panels, threads),
                       [&](int64_t begin, int64_t end) { product.pack(begin, end, packed); });
  Gemm g = product.gemm(packed);
  if (product.gathers()) g.scratch = packed + product.packed();
  run_parts(context, g, threads,
            [&](const Gemm& part, bool is_last, int64_t) { product.run(part, is_last); });
  return Error::Ok;
}

Error multiply_transposed_batch(Context& context, const float* x, const float* w, float* y,
                                int64_t batch, int64_t m, int64_t k, int64_t n) {
  const TransposedProduct first(x, w, nullptr, y, m, k, n);
  const int64_t cost = first.main == 0 ? kReadCost : 1;
  const int64_t threads = useful_threads(context, Checked(batch) * m * k * n * cost);
  if (batch < threads) {
    for (int64_t i = 0; i < batch; ++i) {
      ETX_TRY(multiply_transposed(context, x + i * m * k, w + i * n * k, nullptr, y + i * m * n, m,
                                  k, n));
    }
    return Error::Ok;
  }
  const int64_t floats = first.floats();
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * floats, "not enough temporary memory to pack self"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const Part part(batch, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const Rows rows(w + i * n * k);
        TransposedProduct(x + i * m * k, rows, nullptr, y + i * m * n, m, k, n)
            .run_alone(memory + job * floats);
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
