// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_PAIR_CHECKS_H_
#define ETX_TESTS_PAIR_CHECKS_H_

/// What compares products of pairs of bfloat16 with plain loops: sums of whole numbers are exact.

#include <algorithm>
#include <cstring>

#include "check.h"
#include "isa/pairs.h"

namespace {

using etx::portable::Gemm;
using etx::portable::Pairs;

/// Small whole numbers and their bits as bfloat16.
struct Whole {
  Floats values;
  std::vector<uint16_t> halves;

  Whole(Check& t, int64_t n) : values(t.draw(n)), halves(static_cast<size_t>(n)) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::trunc(8 * values[i]);
      uint32_t bits;
      std::memcpy(&bits, &values[i], sizeof bits);
      halves[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  const float* pairs() const { return reinterpret_cast<const float*>(halves.data()); }
};

constexpr int64_t kPairWidth = 32;

/// How the rows of B are found: in panels, of which the last may lie apart; at an index whose steps
/// are even, or not.
enum class Found { Panels, Tail, Evenly, Anywhere };

/// One product of `rows` x 2 `depth` by 2 `depth` x `columns`.
void check_pairs(Check& t, const Pairs& pairs, int64_t rows, int64_t depth, int64_t columns,
                 Found found, Gemm::Store store) {
  const int64_t whole = (columns + kPairWidth - 1) / kPairWidth * kPairWidth;
  const bool is_indexed = found == Found::Evenly || found == Found::Anywhere;
  const Whole a(t, rows * 2 * depth), b(t, 2 * depth * columns);
  const Whole biases(t, std::max(rows, whole));
  std::vector<int32_t> index;
  // Without an index, whole panels lie one by one; with one, the rows of all.
  Floats panels(static_cast<size_t>(whole * (2 * depth + 3)), kNan), tail;
  Gemm g;
  for (int64_t first = 0; first < columns; first += kPairWidth) {
    Floats panel(static_cast<size_t>(kPairWidth * depth));
    pairs.pack_rows(b.halves.data() + first, columns, std::min(kPairWidth, columns - first), depth,
                    panel.data());
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t place = found == Found::Anywhere ? 2 * (k ^ 1) + k % 3 : k;
      if (is_indexed && first == 0) index.push_back(static_cast<int32_t>(place * whole));
      const int64_t to = is_indexed ? place * whole + first : first * depth + k * kPairWidth;
      std::memcpy(panels.data() + to, panel.data() + k * kPairWidth, kPairWidth * sizeof(float));
    }
    if (found == Found::Tail && columns - first < kPairWidth) {
      tail = panel, g.tail = tail.data();
      std::fill_n(panels.data() + first * depth, kPairWidth * depth, kNan);
    }
  }
  const bool by_column = rows % 2 == 0;
  Floats c(static_cast<size_t>(rows * columns), kNan);
  g.a = a.pairs(), g.a_stride = g.depth = depth, g.of_pairs = true;
  g.b = panels.data(), g.b_stride = kPairWidth;
  g.b_index = is_indexed ? index.data() : nullptr;
  g.panel_stride = is_indexed ? kPairWidth : kPairWidth * depth;
  (by_column ? g.column_bias : g.bias) = biases.values.data();
  g.c = c.data(), g.store = store;
  g.c_stride = store == Gemm::Store::Transposed ? rows : columns;
  g.row_end = rows, g.column_end = columns, g.column_block = 2 * kPairWidth;
  if (store == Gemm::Store::Grid) {
    g.box[0] = columns, g.box[1] = 1;
    g.valid[0] = 1, g.valid[1] = columns, g.valid[2] = 1;
    g.step[1] = 1;
  }
  pairs.gemm(g);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = biases.values[static_cast<size_t>(by_column ? j : i)];
      for (int64_t k = 0; k < 2 * depth; ++k) {
        sum += static_cast<double>(a.values[static_cast<size_t>(i * 2 * depth + k)]) *
               b.values[static_cast<size_t>(k * columns + j)];
      }
      const int64_t at = store == Gemm::Store::Transposed ? j * rows + i : i * columns + j;
      if (c[static_cast<size_t>(at)] == static_cast<float>(sum)) continue;
      std::printf("%s: %d x %d x %d, way %d, stored as %d: %g, not %g\n", t.member,
                  static_cast<int>(rows), static_cast<int>(2 * depth), static_cast<int>(columns),
                  static_cast<int>(found), static_cast<int>(store),
                  static_cast<double>(c[static_cast<size_t>(at)]), sum);
      std::exit(1);
    }
  }
}

void check_pairs(const char* name, const Pairs& pairs) {
  Check t{etx::portable::isa(), name};
  for (const int64_t rows : {1, 2, 7, 12, 13, 15, 16, 17, 31, 32, 33, 48, 65}) {
    for (const int64_t depth : {1, 2, 15, 16, 17, 32, 50}) {
      for (const int64_t columns : {1, 3, 16, 17, 31, 32, 37, 64, 101}) {
        for (const Found found : {Found::Panels, Found::Tail, Found::Evenly, Found::Anywhere}) {
          for (const auto store : {Gemm::Store::Rows, Gemm::Store::Transposed, Gemm::Store::Grid}) {
            check_pairs(t, pairs, rows, depth, columns, found, store);
          }
        }
      }
    }
  }
  std::printf("%s\n", name);
}

}  // namespace

#endif  // ETX_TESTS_PAIR_CHECKS_H_
