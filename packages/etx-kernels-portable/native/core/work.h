// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_WORK_H_
#define ETX_PORTABLE_WORK_H_

#include <etx/kernel.h>

#include "core/checked.h"
#include "core/min_max.h"

namespace etx::portable {

/// Multiplications each thread should get; fewer are not worth waking it.
constexpr int64_t kThreadWork = 128 * 1024;

/// Multiplications in whose time one element is read that serves only a few.
constexpr int64_t kReadCost = 4;

/// What a multiplication costs where each element that is read serves `rows` of them.
constexpr int64_t read_cost(int64_t rows) {
  return max<int64_t>(kReadCost / max<int64_t>(rows, 1), 1);
}

/// How many threads `work` multiplications deserve.
inline int64_t useful_threads(const Context& context, Checked work) {
  const int64_t useful = work.value_or(INT64_MAX) / kThreadWork, have = context.num_threads();
  return useful <= 1 ? 1 : min(useful, have);
}

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Part `i` of `count` of [0, n), in multiples of `unit`.
struct Part {
  int64_t begin, end;
  Part(int64_t n, int64_t unit, int64_t i, int64_t count) {
    const int64_t units = divide_up(n, unit);
    begin = units * i / count * unit;
    end = units * (i + 1) / count * unit;
    end = min(end, n);
  }
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_WORK_H_
