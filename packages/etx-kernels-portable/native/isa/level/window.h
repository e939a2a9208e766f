// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_WINDOW_H_
#define ETX_PORTABLE_LEVEL_WINDOW_H_

/// The inner loops of pooling.

#include "isa/isa.h"
#include "isa/level/loops.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

inline VecI load_ints(const int32_t* p) {
  VecI v;
  memcpy(&v, p, sizeof(v));
  return v;
}

template <bool chained>
inline void largest_of_taps(const float* x, const int32_t* from, const int32_t* offset,
                            const int32_t* move, int64_t taps, float* y, int32_t* at, int64_t n) {
  for (int64_t q = 0; q < n; q += kLanes) {
    VecF best = load(x + q + offset[0]);
    VecI where = splat(move[0]);
    if constexpr (chained) where = where + load_ints(from + q + offset[0]);
    for (int64_t t = 1; t < taps; ++t) {
      const VecF v = load(x + q + offset[t]);
      VecI here = splat(move[t]);
      if constexpr (chained) here = here + load_ints(from + q + offset[t]);
      const auto better = (v > best) | (v != v);
      best = better ? v : best;
      where = better ? here : where;
    }
    store(y + q, best);
    store(at + q, where);
  }
}

void max_window(const float* x, const int32_t* from, const int32_t* offset, const int32_t* move,
                int64_t taps, float* y, int32_t* at, int64_t n) {
  if (from == nullptr) {
    largest_of_taps<false>(x, from, offset, move, taps, y, at, n);
  } else {
    largest_of_taps<true>(x, from, offset, move, taps, y, at, n);
  }
}

/// y[i] = the fold of x[i + t step] for t < taps.
template <VecF (*join)(VecF, VecF)>
inline void fold_taps(const float* x, int64_t step, int64_t taps, float* y, const FoldedLines& l) {
  for (int64_t line = 0; line < l.count; ++line, x += l.from, y += l.to) {
    int64_t i = 0;
    for (; l.length - i > kLanes; i += 2 * kLanes) {
      const int64_t last = l.length - kLanes, at = i + kLanes < last ? i + kLanes : last;
      const float *near = x + i, *far = x + at;
      VecF low = load(near), high = load(far);
      for (int64_t t = 1; t < taps; ++t) {
        low = join(low, load(near += step));
        high = join(high, load(far += step));
      }
      store(y + i, low);
      store(y + at, high);
    }
    if (i >= l.length) continue;
    const auto rest = static_cast<size_t>(l.length - i);
    const float* from = x + i;
    VecF total = load_part(from, rest);
    for (int64_t t = 1; t < taps; ++t) total = join(total, load_part(from += step, rest));
    store_part(y + i, total, rest);
  }
}

void largest_taps(const float* x, int64_t step, int64_t taps, float* y, const FoldedLines& lines) {
  fold_taps<max_with_nan>(x, step, taps, y, lines);
}

void sum_taps(const float* x, int64_t step, int64_t taps, float* y, const FoldedLines& lines) {
  fold_taps<vec_add>(x, step, taps, y, lines);
}

bool store_window(const float* best, const int32_t* at, int64_t first, int64_t step, float* y,
                  int64_t* index, size_t n) {
  const float lowest = -infinity();
  int32_t lowest_found = 0;
  for (size_t i = 0; i < n; ++i) {
    y[i] = best[i];
    lowest_found |= best[i] == lowest ? 1 : 0;
  }
  for (size_t i = 0; i < n; ++i) index[i] = at[i] + first + static_cast<int64_t>(i) * step;
  return lowest_found != 0;
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_WINDOW_H_
