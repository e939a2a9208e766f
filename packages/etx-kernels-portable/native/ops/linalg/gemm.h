// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_GEMM_H_
#define ETX_PORTABLE_GEMM_H_

#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/work.h"
#include "isa/isa.h"

namespace etx::portable {

/// True with sixteen registers of eight floats: a tile reads less of A than of B, and copying rows
/// of A costs more than reading them where they lie.
inline bool has_small_tiles() { return !kIsSmall && isa().vector_floats == 8; }

/// Columns of B, `bytes_per_column` each, that one thread passes over while it goes through the
/// rows of A: they fit the cache, but are not so few that rows of A are read too often: of small
/// tiles at least `few` panels.
inline int64_t column_block(int64_t bytes_per_column, int64_t few = 4) {
  const int64_t bytes = has_small_tiles() ? 128 * 1024 : 384 * 1024;
  const int64_t panels = bytes / (bytes_per_column * isa().tile_columns + 1);
  const int64_t least = kIsSmall || has_small_tiles() ? few : 128 / isa().tile_columns;
  return max(panels, least) * isa().tile_columns;
}

/// Rows of x up to which `Isa::gemv` beats packing, which fills up the last vector.
inline int64_t dot_rows() { return isa().vector_floats / 2 + 1; }

/// True when rows of A, `depth` floats apart, are worth being gathered for a product of so many
/// columns: they are read once a panel, and at multiples of 4 KB they drive each other out of the
/// cache.
bool should_gather(int64_t depth, int64_t columns);

/// Floats of scratch that `run_gemm` needs for `threads`.
inline int64_t gemm_scratch(int64_t depth, int64_t threads) {
  return threads * isa().tile_rows * scratch_stride(depth);
}

/// Rows of A: floats, or bfloat16 numbers, or pairs of these, for which B is pairs, too.
struct Rows {
  const float* floats = nullptr;
  const uint16_t* halves = nullptr;
  bool of_pairs = false;

  Rows(const float* rows) : floats(rows) {}  // NOLINT(google-explicit-constructor)
  Rows(const uint16_t* rows, bool as_pairs) : halves(rows), of_pairs(as_pairs) {
    if (as_pairs) floats = reinterpret_cast<const float*>(rows), halves = nullptr;
  }
  bool is_narrow() const { return halves != nullptr || of_pairs; }
  /// True for pairs on a processor that multiplies tiles of them, the faster the more of a tile is
  /// used; columns beyond the last one are free then.
  bool in_tiles() const;
  void set(Gemm& g, int64_t first = 0) const {
    g.a = floats == nullptr ? nullptr : floats + first;
    g.a_half = halves == nullptr ? nullptr : halves + first;
    g.of_pairs = of_pairs;
  }
};

/// Runs `g` on the caller's thread.
void run_loop(const Gemm& g);

/// Multiplies what `g` says and calls `dots(first, last)` for its rows from `begin` to `end`: a few
/// rows of A serve both while they are in the cache.
template <class Dots>
void run_beside(const Gemm& g, bool at_once, int64_t begin, int64_t end, const Dots& dots) {
  if (g.column_end - g.column_begin > g.column_block) at_once = true;
  const int64_t rows = g.row_end - g.row_begin;
  const int64_t tiles = at_once ? 1 : divide_up(max<int64_t>(rows, 1), isa().tile_rows);
  const int64_t step = divide_up(rows, tiles);
  Gemm few = g;
  for (int64_t row = g.row_begin; row < g.row_end; row = few.row_end) {
    few.row_begin = row, few.row_end = min(row + step, g.row_end);
    run_loop(few);
    const int64_t first = max(row, begin), last = min(few.row_end, end);
    if (first < last) dots(first, last);
  }
}

/// Runs `g` on `threads` threads, split by columns or by rows. `g.scratch`, if any, holds
/// `gemm_scratch` floats.
void run_gemm(Context& context, const Gemm& g, int64_t threads);

/// c = a b + bias for row-major float32 matrices: a is m x k, b is k x n; bias has one value per
/// row or is null.
Error multiply(Context& context, const Rows& a, const float* b, const float* bias, float* c,
               int64_t m, int64_t k, int64_t n);

/// c = a b for some columns of b, whose rows are `stride` apart, or the transpose of that, with
/// `part_floats(k, columns, threads)` of memory.
void multiply_part(Context& context, const float* a, const float* b, int64_t stride, float* c,
                   int64_t m, int64_t k, int64_t columns, Gemm::Store store, int64_t threads,
                   float* memory);
int64_t part_floats(int64_t k, int64_t columns, int64_t threads);

/// The same without bias for `batch` matrices that follow each other.
Error multiply_batch(Context& context, const float* a, const float* b, float* c, int64_t batch,
                     int64_t m, int64_t k, int64_t n);

/// c = a b on the caller's thread, with `alone_floats(m, k, n)` of memory.
void multiply_alone(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n,
                    float* memory);
int64_t alone_floats(int64_t m, int64_t k, int64_t n);

/// y = x w^T + bias: x is m x k, w is n x k, bias (n values) may be null.
Error multiply_transposed(Context& context, const float* x, const Rows& w, const float* bias,
                          float* y, int64_t m, int64_t k, int64_t n);

/// The same without bias for `batch` matrices that follow each other.
Error multiply_transposed_batch(Context& context, const float* x, const float* w, float* y,
                                int64_t batch, int64_t m, int64_t k, int64_t n);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_GEMM_H_
