// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_PANELS_H_
#define ETX_PORTABLE_LEVEL_PANELS_H_

/// The packing of operands into panels.

#include "isa/level/transpose.h"

namespace etx::portable {
namespace {

void pack_transposed(const float* x, int64_t stride, int64_t rows, int64_t depth, float* panels) {
  constexpr int64_t kWidth = 2 * kLanes;
  for (int64_t row = 0; row < rows; row += kWidth, panels += kWidth * depth) {
    const int64_t width = rows - row < kWidth ? rows - row : kWidth;
    store_transposed(x + row * stride, stride, width, depth, panels, kWidth);
    for (int64_t k = 0; width < kWidth && k < depth; ++k) {
      for (int64_t j = width; j < kWidth; ++j) panels[k * kWidth + j] = 0.0f;
    }
  }
}

void pack_rows(const float* b, int64_t stride, int64_t columns, int64_t depth, float* panels) {
  constexpr int64_t kWidth = 2 * kLanes;
  for (int64_t column = 0; column < columns; column += kWidth) {
    const int64_t width = columns - column < kWidth ? columns - column : kWidth;
    for (int64_t k = 0; k < depth; ++k, panels += kWidth) {
      const float* const from = b + k * stride + column;
      store(panels, width < kLanes ? load_part(from, static_cast<size_t>(width)) : load(from));
      if (width == kWidth) {
        store(panels + kLanes, load(from + kLanes));
      } else {
        const int64_t rest = width > kLanes ? width - kLanes : 0;
        store(panels + kLanes, load_part(from + width - rest, static_cast<size_t>(rest)));
      }
    }
  }
}

/// Two vectors of each run, one or two runs a row: no loops over them.
template <int count>
inline void pack_few(const float* b, const int32_t* index, int64_t depth, const PanelRun* runs,
                     float* to) {
  const int64_t first = runs[0].from, second = runs[count - 1].from, length = runs[0].length;
  for (int64_t k = 0; k < depth; ++k, to += 2 * kLanes) {
    const float* const row = b + index[k];
    store(to, load(row + first));
    store(to + kLanes, load(row + first + kLanes));
    if constexpr (count == 1) continue;
    store(to + length, load(row + second));
    store(to + length + kLanes, load(row + second + kLanes));
  }
}

inline void pack_many(const float* b, const int32_t* index, int64_t depth, const PanelRun* runs,
                      int64_t count, float* panel) {
  for (int64_t k = 0; k < depth; ++k) {
    float* to = panel + k * 2 * kLanes;
    const float* const row = b + index[k];
    for (int64_t r = 0; r < count; ++r) {
      const float* const from = row + runs[r].from;
      const int64_t length = runs[r].length;
      for (int64_t j = 0; j < length; j += kLanes) store(to + j, load(from + j));
      to += length;
    }
  }
}

/// What a vector has too much is overwritten by the next run, and that of the last row never gets
/// to the panel.
void pack_runs(const float* b, const int32_t* index, int64_t depth, const PanelRun* runs,
               int64_t count, float* panel) {
  constexpr int64_t kWidth = 2 * kLanes;
  const auto pack = [&](const int32_t* rows, int64_t length, float* to) ETX_INLINE_LAMBDA {
    if (count == 1) return pack_few<1>(b, rows, length, runs, to);
    if (count == 2) return pack_few<2>(b, rows, length, runs, to);
    pack_many(b, rows, length, runs, count, to);
  };
  if (depth == 0) return;
  float last[2 * kWidth] = {};
  pack(index, depth - 1, panel);
  pack(index + depth - 1, 1, last);
  for (int64_t j = 0; j < kWidth; j += kLanes) {
    store(panel + (depth - 1) * kWidth + j, load(last + j));
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_PANELS_H_
