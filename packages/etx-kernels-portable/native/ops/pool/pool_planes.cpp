// SPDX-License-Identifier: BSD-3-Clause
#include "ops/pool/pool_planes.h"

#include <limits>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

/// Lines of a plane are folded into a padded one, then its points; small planes together.
struct Planes {
  ConvShape w;
  decltype(Isa::sum_taps) fold;
  float fill;
  int64_t length;  ///< Of a padded line, which holds all that the windows of a line read.
  int64_t lines;   ///< Of outputs at a time.

  Planes(const PoolShape& shape, bool is_max) : w(shape.window) {
    constexpr int64_t kChunk = 2048;
    // Lines of one point, which all windows have, are one line.
    if (w.in[2] == 1 && w.out[2] == 1 && w.padding[2] % w.dilation[2] == 0) {
      w.kernel[2] = w.stride[2] = w.dilation[2] = 1, w.padding[2] = 0;
      w.swap_axes(1, 2);
    }
    fold = is_max ? isa().largest_taps : isa().sum_taps;
    fill = is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
    length = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
    const bool is_dense = length == w.out[2] * w.stride[2];  // Folded lines are one line then.
    if (w.padding[2] == 0 && !is_dense) length = max(length, w.in[2]);
    lines = min(max<int64_t>(kChunk / length, 1), (Checked(shape.planes) * w.out[1]).value_or(1));
  }

  int64_t floats() const { return 2 * lines * length; }

  /// Folds `count` lines of windows from line `first` on into padded ones; `folded` is free.
  void fold_lines(const float* x, int64_t first, int64_t count, float* folded, float* to) const {
    constexpr int64_t kFew = 4;
    const int64_t width = w.in[2], used = min(width, length - w.padding[2]), step = w.dilation[1];
    to += w.padding[2];
    for (int64_t i = 0, made = 1; i < count; i += made, to += made * length) {
      int64_t top = (first + i) * w.stride[1] - w.padding[1], taps = w.kernel[1];
      for (; taps > 0 && top < 0; top += step) --taps;
      while (taps > 0 && top + (taps - 1) * step >= w.in[1]) --taps;
      made = 1;
      if (taps == w.kernel[1]) {
        const int64_t below = w.in[1] - 1 - top - (taps - 1) * step;
        made = min(count - i, below / w.stride[1] + 1);
      }
      const int64_t all = ((made - 1) * w.stride[1] + 1) * width;
      const bool is_line = w.stride[1] == 1 && length == width && used == width;
      if (taps == 0) {
        for (int64_t k = 0; k < used; ++k) to[k] = fill;
      } else if (is_line) {
        fold(x + top * width, step * width, taps, to, {1, made * width, 0, 0});
      } else if (used == width && width <= kFew && all <= lines * length) {
        fold(x + top * width, step * width, taps, folded, {1, all, 0, 0});
        for (int64_t k = 0; k < width; ++k) {
          const float* from = folded + k;
          for (int64_t line = 0; line < made; ++line, from += w.stride[1] * width) {
            to[line * length + k] = *from;
          }
        }
      } else {
        fold(x + top * width, step * width, taps, to, {made, used, w.stride[1] * width, length});
      }
    }
  }

  void fold_points(const float* x, int64_t count, float* folded, float* y) const {
    const int64_t width = w.out[2], step = w.stride[2], step_of_taps = w.dilation[2];
    const bool is_wide = width > (step <= 2 ? 4 : 8);  // For vectors of points, not one by one.
    if (step == 1 && is_wide) {
      return fold(x, step_of_taps, w.kernel[2], y, {count, width, length, width});
    }
    const int64_t points = (count - 1) * length + (width - 1) * step + 1;
    fold(x, step_of_taps, w.kernel[2], folded, {1, points, 0, 0});
    if (width == 1 || length == width * step) {
      const int64_t next = width == 1 ? length : step;
      return isa().pad_lines(folded, 0, 1, 0, count * width, next, 0.0f, y, count * width);
    }
    if (is_wide) {
      return isa().pad_lines(folded, length, count, 0, width, step, 0.0f, y, width);
    }
    for (int64_t line = 0; line < count; ++line, folded += length) {
      for (int64_t i = 0; i < width; ++i) *y++ = folded[i * step];
    }
  }

  void run(const float* x, int64_t planes, float* room, float* y) const {
    float* const folded = room + lines * length;
    for (int64_t count = 0; planes > 0; planes -= count, x += count * w.in_size()) {
      count = min(max<int64_t>(lines / w.out[1], 1), planes);
      for (int64_t first = 0; first < w.out[1]; first += lines) {
        const int64_t each = min(w.out[1] - first, lines), all = count * each;
        for (int64_t i = 0; i < count; ++i) {
          fold_lines(x + i * w.in_size(), first, each, folded, room + i * each * length);
        }
        fold_points(room, all, folded, y);
        y += all * w.out[2];
      }
    }
  }
};

}  // namespace

Error pool_planes(Context& context, const PoolShape& shape, bool is_max, const float* x,
                  const float* counts, int64_t counted, float* y) {
  const Planes planes(shape, is_max);
  const ConvShape& w = planes.w;
  const int64_t floats = planes.floats(), size = w.out_size();
  const Checked work = Checked(shape.planes) * size * (w.kernel[1] + w.kernel[2]);
  const int64_t threads = useful_threads(context, work);
  ETX_ASSIGN(float* const memory, scratch<float>(context, threads * floats,
                                                 "not enough temporary memory for padded lines"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      float* const room = memory + job * floats;
      for (int64_t i = 0; i < floats; ++i) room[i] = planes.fill;
      const Part part(shape.planes, 1, job, threads);
      for (int64_t i = part.begin, count = 0; i < part.end; i += count) {
        count = counts == nullptr ? part.end - i : min(counted, part.end - i);
        planes.run(x + i * w.in_size(), count, room, y + i * size);
        const auto made = static_cast<size_t>(count * size);
        if (counts != nullptr) isa().div(y + i * size, counts, y + i * size, made);
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
