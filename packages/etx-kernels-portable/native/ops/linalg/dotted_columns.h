// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_DOTTED_COLUMNS_H_
#define ETX_PORTABLE_DOTTED_COLUMNS_H_

#include "isa/isa.h"

namespace etx::portable {

/// Columns of a product behind the last full vector, or all, that are cheaper as dot products with
/// the `m` rows of A.
int64_t dotted(int64_t m, int64_t depth, int64_t n);

/// The last `count` columns of a product of floats, or of pairs, as dot products.
struct DottedColumns {
  int64_t m = 0, depth = 0, n = 0, count = 0;
  bool of_pairs = false;  ///< Elements of A and B, `depth` of them, are pairs of bfloat16.
  const float *a = nullptr, *bias = nullptr;
  float* c = nullptr;
  float* memory = nullptr;  ///< `floats`: the columns one by one, then what they give.

  int64_t length() const { return of_pairs ? 2 * depth : depth; }
  int64_t floats() const { return count * (length() + m); }
  /// Element `k` of the `j`-th column.
  void put(int64_t j, int64_t k, float element) const;
  /// From rows of `n` floats.
  void pack(const float* b) const;
  /// Rows `begin` to `end` of the result, whose columns are packed.
  void run(int64_t begin, int64_t end) const;
  /// Multiplies what `g` says and, of rows `begin` to `end`, these columns: a few rows of A serve
  /// both while they are in the cache.
  void run_beside(const Gemm& g, int64_t begin, int64_t end) const;
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_DOTTED_COLUMNS_H_
