// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/winograd.h"

#include <cstring>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/conv/padded_planes.h"

namespace etx::portable {
namespace {

constexpr int64_t kFactors = 16, kTaps = 9;
constexpr int64_t kRows = 16;  ///< Of the weight: whole vectors, however many columns it has.
/// Between what is written together: at multiples of 4 KB they drive each other out of the cache.
constexpr int64_t kApart = 16;

/// The convolution of 4 x 4 taps, 2 apart, whose outputs are the tiles.
ConvShape tiles_of(const ConvShape& s) {
  ConvShape tiles = s;
  for (int a = 1; a < ConvShape::kAxes; ++a) {
    tiles.kernel[a] = 4, tiles.stride[a] = 2;
    tiles.out[a] = divide_up(s.out[a], 2);
  }
  return tiles;
}

struct Tiles {
  const ConvShape& shape;
  const PaddedPlanes planes;
  const int64_t lines;    ///< Of tiles, that are multiplied before their outputs are joined.
  const int64_t columns;  ///< Tiles of these, with those between the lines.
  const int64_t phase;    ///< From one place in a tile of outputs to the next one.
  const int64_t weight_step, point_step, sum_step;  ///< From one factor to the next one.
  const int64_t threads;
  const bool by_rows;  ///< Each thread has some outputs' channels; else some tiles.
  int32_t offset[kFactors];
  float *padded = nullptr, *outputs = nullptr, *factors = nullptr, *panels = nullptr;
  const float *image = nullptr, *weight = nullptr, *bias = nullptr;  ///< Of a group.
  float* out = nullptr;
  int64_t first_line = 0, last_line = 0;

  Tiles(Context& context, const ConvShape& s)
      : shape(s),
        planes(tiles_of(s)),
        lines(lines_at_once()),
        columns(columns_of(lines)),
        phase(divide_up(columns, isa().tile_columns) * isa().tile_columns),
        weight_step(s.out_channels * s.in_channels + kApart),
        point_step(s.in_channels * isa().tile_columns + kApart),
        sum_step(s.out_channels * isa().tile_columns + kApart),
        threads(
            useful_threads(context, Checked(kFactors) * s.out_channels * s.in_channels * columns)),
        by_rows(should_divide_rows()) {
    for (int64_t i = 0; i < kFactors; ++i) {
      offset[i] = static_cast<int32_t>(planes.offset({0, i / 4, i % 4}));
    }
  }

  int64_t all_lines() const { return divide_up(shape.out[1], 2); }
  int64_t columns_of(int64_t count) const {
    return (count - 1) * planes.length[2] + divide_up(shape.out[2], 2);
  }
  /// So many that their outputs stay near.
  int64_t lines_at_once() const {
    constexpr int64_t kNear = 1 << 20;
    const int64_t most = kNear / (4 * shape.out_channels * planes.length[2]);
    return divide_up(all_lines(), divide_up(all_lines(), max<int64_t>(most, 1)));
  }

  /// True where rows, each with all tiles, are divided more evenly than tiles are: less evenly,
  /// too, where there are many of them, which stay with the thread that mixed them.
  bool should_divide_rows() const {
    const auto last = [&](int64_t n, int64_t unit) {
      return divide_up(divide_up(n, unit), threads) * threads * unit;
    };
    const int64_t rows = shape.out_channels, cost = rows > columns ? 4 : 5;
    return cost * last(rows, kRows) * columns <
           (9 - cost) * last(columns, isa().vector_floats) * rows;
  }

  Error allocate(Context& context) {
    const Checked input = Checked(shape.in_channels) * planes.channel() + PaddedPlanes::kSlack;
    const Checked output = Checked(shape.out_channels) * 4 * phase + PaddedPlanes::kSlack;
    const Checked rest = Checked(weight_step) + Checked(threads) * (point_step + sum_step);
    ETX_ASSIGN(padded, scratch<float>(context, (input + output + rest * kFactors).value_or(-1),
                                      "not enough temporary memory for Winograd's products"));
    outputs = padded + input.value_or(0);
    memset(outputs - PaddedPlanes::kSlack, 0, PaddedPlanes::kSlack * sizeof(float));
    factors = outputs + output.value_or(0);
    panels = factors + kFactors * weight_step;
    return Error::Ok;
  }

  /// Calls `step` for each thread.
  void run(Context& context, void (Tiles::*step)(int64_t job) const) const {
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) (this->*step)(job);
    });
  }

  Part rows(int64_t job) const { return {shape.out_channels, kRows, job, threads}; }

  /// Pads the image, and mixes the weight unless there is none.
  void prepare(int64_t job) const {
    const Part channels(shape.in_channels, 1, job, threads), part = rows(job);
    planes.copy_channels(image + channels.begin * shape.in_size(), channels.end - channels.begin,
                         padded + channels.begin * planes.channel());
    if (weight == nullptr) return;
    const int64_t depth = shape.in_channels, begin = part.begin * depth;
    isa().tiles_of_taps(weight + begin * kTaps, part.end * depth - begin, factors + begin,
                        weight_step);
  }

  float* panels_of(int64_t job) const { return panels + job * kFactors * (point_step + sum_step); }

  /// Leaves 1 in front of the thread's panels, or 0 where a result is not finite.
  void multiply(int64_t job) const {
    const int64_t count = columns_of(last_line - first_line);
    const Part all_rows(shape.out_channels, 1, 0, 1), all_tiles(count, 1, 0, 1);
    const Part of_rows = by_rows ? rows(job) : all_rows;
    const Part tiles = by_rows ? all_tiles : Part(count, isa().vector_floats, job, threads);
    float* const memory = panels_of(job);
    bool finite = true;
    for (int64_t i = tiles.begin; i < tiles.end; i += isa().tile_columns) {
      finite &= multiply_panel(of_rows, i, tiles.end - i, memory);
    }
    *memory = finite ? 1.0f : 0.0f;
  }

  /// Multiplies the panel of tiles from `tile` on, of which `count` are left.
  bool multiply_panel(const Part& rows, int64_t tile, int64_t count, float* memory) const {
    const int64_t width = isa().tile_columns, depth = shape.in_channels;
    const int64_t vectors = divide_up(min(count, width), isa().vector_floats);
    float* const sums = memory + kFactors * point_step;
    isa().tiles_of_points(padded + first_line * planes.length[2] + tile, offset, planes.channel(),
                          depth, vectors, memory, point_step);
    Gemm g;
    g.a_stride = g.depth = depth;
    g.b_stride = g.c_stride = g.column_block = width;
    g.panel_stride = depth * width;
    g.row_end = rows.end - rows.begin;
    g.column_end = vectors * isa().vector_floats;
    for (int64_t i = 0; i < kFactors; ++i) {
      g.a = factors + i * weight_step + rows.begin * depth;
      g.b = memory + i * point_step, g.c = sums + i * sum_step;
      isa().gemm(g);
    }
    return isa().outputs_of_tiles(sums, sum_step, g.row_end, vectors,
                                  bias == nullptr ? nullptr : bias + rows.begin,
                                  outputs + rows.begin * 4 * phase + tile, 4 * phase, phase);
  }

  /// Puts the outputs of tiles side by side.
  void join(int64_t job) const {
    const int64_t height = shape.out[1], width = shape.out[2], first = 2 * first_line;
    const int64_t count = min(2 * last_line, height) - first;
    const Part channels = by_rows ? rows(job) : Part(shape.out_channels, 1, 0, 1);
    const Part mine = by_rows ? Part(count, 1, 0, 1) : Part(count, 2, job, threads);
    for (int64_t k = channels.begin; k < channels.end; ++k) {
      for (int64_t y = mine.begin; y < mine.end; ++y) {
        isa().join_line(outputs + (4 * k + y % 2 * 2) * phase + y / 2 * planes.length[2], phase, 2,
                        width, out + (k * height + first + y) * width);
      }
    }
  }

  bool are_finite() const {
    bool finite = true;
    for (int64_t job = 0; job < threads; ++job) finite &= *panels_of(job) == 1.0f;
    return finite;
  }
};

}  // namespace

bool suits_winograd(const Context& context, const ConvShape& s) {
  constexpr int64_t kFewChannels = 32, kFewPoints = 100, kWork = 1 << 18;
  bool suits = !s.transposed && s.in[0] == 1 && s.out[0] == 1 && s.kernel[0] == 1;
  for (int a = 1; a < ConvShape::kAxes; ++a) {
    suits &= s.kernel[a] == 3 && s.stride[a] == 1 && s.dilation[a] == 1;
  }
  if (!suits || min(s.in_channels, s.out_channels) < kFewChannels) return false;
  const PaddedPlanes planes(tiles_of(s));
  // Threads meet once more than in a sweep.
  const Checked work = Checked(s.in_channels) * s.out_channels * s.out_size();
  return s.out_size() >= kFewPoints && planes.is_worthwhile(s) &&
         work.value_or(INT64_MAX) >= (context.num_threads() > 1 ? 4 * kWork : kWork) &&
         3 * 4 * planes.sweep(tiles_of(s).out) <= 4 * s.out_size();
}

Result<bool> convolve_winograd(Context& context, const ConvShape& shape, const float* input,
                               const float* weight, const float* bias, float* out) {
  Tiles tiles(context, shape);
  ETX_TRY(tiles.allocate(context));
  for (int64_t group = 0; group < shape.groups; ++group) {
    const int64_t row = group * shape.out_channels;
    tiles.bias = bias == nullptr ? nullptr : bias + row;
    for (int64_t i = 0; i < shape.batch; ++i) {
      const int64_t p = i * shape.groups + group;
      tiles.image = input + p * shape.in_channels * shape.in_size();
      tiles.weight = i == 0 ? weight + row * shape.in_channels * kTaps : nullptr;
      tiles.out = out + p * shape.out_channels * shape.out_size();
      tiles.run(context, &Tiles::prepare);
      for (int64_t line = 0, lines = tiles.all_lines(); line < lines; line = tiles.last_line) {
        tiles.first_line = line, tiles.last_line = min(line + tiles.lines, lines);
        tiles.run(context, &Tiles::multiply);
        if (!tiles.are_finite()) return false;
        tiles.run(context, &Tiles::join);
      }
    }
  }
  return true;
}

}  // namespace etx::portable
