// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_LINE_CHECKS_H_
#define ETX_TESTS_LINE_CHECKS_H_

/// Checks of the loops of isa.def that move or join lines.

#include <cmath>
#include <cstdint>

#include "check.h"
#include "isa/isa.h"

namespace {

void check_store_transposed(Check& t) {
  for (int64_t rows = 1; rows < 20; ++rows) {
    for (int64_t columns = 1; columns < 20; ++columns) {
      const Floats from = t.draw(rows * 23);
      Floats to(static_cast<size_t>(columns * 21), 5.0f);
      t.isa.store_transposed(from.data(), 23, rows, columns, to.data(), 21);
      for (int64_t i = 0; i < columns * 21; ++i) {
        const int64_t row = i % 21, column = i / 21;
        const auto at = static_cast<size_t>(row * 23 + column);
        t.equal(to[static_cast<size_t>(i)], row < rows ? from[at] : 5.0f);
      }
    }
  }
}

/// Lines of `n` floats of which each joins some that lie three apart; nothing else is written.
void check_taps(Check& t, size_t n, int64_t taps, bool is_max) {
  constexpr size_t kLines = 3, kStep = 3;
  const size_t room = n + kStep * static_cast<size_t>(taps - 1), pitch = n + 2;
  Floats x = t.draw(kLines * room), y(kLines * pitch, kNan);
  if (is_max && n > 0) x[room + n / 2] = kNan;
  const auto loop = is_max ? t.isa.largest_taps : t.isa.sum_taps;
  loop(x.data(), kStep, taps, y.data(),
       {kLines, static_cast<int64_t>(n), static_cast<int64_t>(room), static_cast<int64_t>(pitch)});
  for (size_t i = 0; i < kLines * pitch; ++i) {
    double joined = is_max ? -kInfinity : 0.0;
    for (size_t k = 0; k < static_cast<size_t>(taps); ++k) {
      const double v = i % pitch < n ? x[i / pitch * room + i % pitch + k * kStep] : kNan;
      joined = is_max ? (v > joined || std::isnan(v) ? v : joined) : joined + v;
    }
    t.equal(y[i], joined);
  }
}
void check_largest_taps(Check& t) {
  for (const size_t n : kSizes) check_taps(t, n, 1, true), check_taps(t, n, 5, true);
}
void check_sum_taps(Check& t) {
  for (const size_t n : kSizes) check_taps(t, n, 1, false), check_taps(t, n, 5, false);
}

}  // namespace

#endif  // ETX_TESTS_LINE_CHECKS_H_
