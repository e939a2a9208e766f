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

constexpr int64_t kFactors = 16, kTaps = 9, kPlaces = 4;
/// Rows of a weight that are multiplied while their products stay near: two tiles of most levels.
constexpr int64_t kRows = 24;
/// Between what is written together: at multiples of 4 KB they drive each other out of the cache.
constexpr int64_t kApart = 16;
constexpr int64_t kSlack = PaddedPlanes::kSlack;

/// The convolution of 4 x 4 taps, 2 apart, whose outputs are the tiles.
ConvShape tiles_of(const ConvShape& s) {
  ConvShape tiles = s;
  for (int a = 1; a < ConvShape::kAxes; ++a) {
    tiles.kernel[a] = 4, tiles.stride[a] = 2;
    tiles.out[a] = divide_up(s.out[a], 2);
  }
  return tiles;
}

/// Up to `n` of some units, in whole units.
int64_t round_up(int64_t n, int64_t unit) { return divide_up(n, unit) * unit; }

struct Tiles {
  const ConvShape& shape;
  const PaddedPlanes planes;
  const int64_t all_lines;  ///< Of tiles.
  const int64_t threads;
  /// The factors of the points are made for all tiles, of the weight for a few rows, which threads
  /// share; else these of all rows, those of a panel of tiles: what takes less memory.
  const bool is_deep;
  const int64_t lines;    ///< Of tiles, that are multiplied before their outputs are joined.
  const int64_t columns;  ///< Tiles of these, with those between the lines.
  const int64_t phase;    ///< From one place in a tile of outputs to the next one.
  const int64_t point_step, weight_step;  ///< From one factor to the next one.
  int32_t offset[kFactors];
  float *padded = nullptr, *points = nullptr, *factors = nullptr, *outputs = nullptr;
  float* own = nullptr;  ///< Each thread's: see `own_floats`.
  const float *image = nullptr, *weight = nullptr, *bias = nullptr;  ///< Of a group.
  float* out = nullptr;
  int64_t first_line = 0, last_line = 0;

  Tiles(const ConvShape& s, int64_t num_threads)
      : shape(s),
        planes(tiles_of(s)),
        all_lines(divide_up(s.out[1], 2)),
        threads(num_threads),
        is_deep(s.out_channels > columns_of(all_lines)),
        lines(is_deep ? all_lines : lines_at_once()),
        columns(columns_of(lines)),
        phase(round_up(columns, isa().tile_columns)),
        point_step(s.in_channels * isa().tile_columns + kApart),
        weight_step(round_up((is_deep ? kRows : s.out_channels) * s.in_channels, kApart) + kApart) {
    for (int64_t i = 0; i < kFactors; ++i) {
      offset[i] = static_cast<int32_t>(planes.offset({0, i / 4, i % 4}));
    }
  }

  int64_t columns_of(int64_t count) const {
    return (count - 1) * planes.length[2] + divide_up(shape.out[2], 2);
  }
  /// So many that their outputs stay near.
  int64_t lines_at_once() const {
    constexpr int64_t kNear = 1 << 20;
    const int64_t most = kNear / (kPlaces * shape.out_channels * planes.length[2]);
    return divide_up(all_lines, divide_up(all_lines, max<int64_t>(most, 1)));
  }

  Checked padded_floats() const {
    const Checked each = is_deep ? Checked(planes.channel()) + kSlack : planes.channel();
    return Checked(is_deep ? threads : shape.in_channels) * each + kSlack;
  }
  int64_t panels() const { return is_deep ? phase / isa().tile_columns : threads; }
  int64_t output_rows() const { return is_deep ? threads * kRows : shape.out_channels; }
  int64_t product_floats() const { return kFactors * (kRows * isa().tile_columns + kApart); }
  Checked floats() const {
    return padded_floats() + Checked(panels()) * kFactors * point_step +
           Checked(is_deep ? threads : 1) * kFactors * weight_step +
           Checked(output_rows()) * kPlaces * phase + kSlack + Checked(threads) * product_floats();
  }

  Error allocate(Context& context) {
    ETX_ASSIGN(padded, scratch<float>(context, floats().value_or(-1),
                                      "not enough temporary memory for Winograd's products"));
    points = padded + padded_floats().value_or(0);
    memset(points - kSlack, 0, kSlack * sizeof(float));
    factors = points + panels() * kFactors * point_step;
    outputs = factors + (is_deep ? threads : 1) * kFactors * weight_step;
    own = outputs + output_rows() * kPlaces * phase + kSlack;
    return Error::Ok;
  }

  /// Calls `step` for each thread.
  void run(Context& context, void (Tiles::*step)(int64_t job) const) const {
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) (this->*step)(job);
    });
  }

  void mix_points(const float* planes_of_tiles, int64_t channels, int64_t left, float* to) const {
    const int64_t vectors = divide_up(min<int64_t>(left, isa().tile_columns), isa().vector_floats);
    isa().tiles_of_points(planes_of_tiles, offset, planes.channel(), channels, vectors, to,
                          point_step);
  }

  /// Pads the image; makes the factors that stay.
  void prepare(int64_t job) const {
    const int64_t depth = shape.in_channels, size = shape.in_size(), width = isa().tile_columns;
    const Part channels(depth, 1, job, threads);
    if (is_deep) {
      float* const plane = padded + job * (planes.channel() + kSlack);
      memset(plane + planes.channel(), 0, kSlack * sizeof(float));
      for (int64_t c = channels.begin; c < channels.end; ++c) {
        planes.copy_channels(image + c * size, 1, plane);
        for (int64_t i = 0; i < columns; i += width) {
          mix_points(plane + i, 1, columns - i,
                     points + i / width * kFactors * point_step + c * width);
        }
      }
      return;
    }
    planes.copy_channels(image + channels.begin * size, channels.end - channels.begin,
                         padded + channels.begin * planes.channel());
    const Part rows(shape.out_channels, kApart, job, threads);  // Whole vectors.
    if (weight != nullptr) mix_weight(rows.begin, rows.end, factors + rows.begin * depth);
  }

  void mix_weight(int64_t begin, int64_t end, float* to) const {
    const int64_t depth = shape.in_channels;
    isa().tiles_of_taps(weight + begin * depth * kTaps, (end - begin) * depth, to, weight_step);
  }

  float* own_floats(int64_t job) const { return own + job * product_floats(); }

  /// Leaves 1 in front of the thread's own floats, or 0 where a result is not finite.
  void multiply(int64_t job) const {
    float* const memory = own_floats(job);
    *memory = is_deep ? multiply_rows(job, memory) : multiply_columns(job, memory);
  }

  float multiply_rows(int64_t job, float* memory) const {
    const int64_t width = isa().tile_columns;
    const Part rows(shape.out_channels, 4, job, threads);
    float* const mixed = factors + job * kFactors * weight_step;
    float* const made = outputs + job * kRows * kPlaces * phase;
    bool finite = true;
    for (int64_t row = rows.begin; row < rows.end; row += kRows) {
      const int64_t end = min(row + kRows, rows.end);
      mix_weight(row, end, mixed);
      for (int64_t i = 0; i < columns; i += width) {
        finite &= multiply_panel(mixed, row, end - row, points + i / width * kFactors * point_step,
                                 columns - i, made + i, memory);
      }
      for (int64_t r = row; r < end; ++r) {
        join_lines(made + (r - row) * kPlaces * phase, r, 0, shape.out[1]);
      }
    }
    return finite ? 1.0f : 0.0f;
  }

  float multiply_columns(int64_t job, float* memory) const {
    const int64_t width = isa().tile_columns, depth = shape.in_channels, all = shape.out_channels;
    const Part tiles(columns_of(last_line - first_line), isa().vector_floats, job, threads);
    float* const panel = points + job * kFactors * point_step;
    bool finite = true;
    for (int64_t i = tiles.begin; i < tiles.end; i += width) {
      mix_points(padded + first_line * planes.length[2] + i, depth, tiles.end - i, panel);
      for (int64_t row = 0; row < all; row += kRows) {
        finite &= multiply_panel(factors + row * depth, row, min(kRows, all - row), panel,
                                 tiles.end - i, outputs + row * kPlaces * phase + i, memory);
      }
    }
    return finite ? 1.0f : 0.0f;
  }

  /// Multiplies `rows` rows of factors of the weight, the first of which is `row`, and a panel of
  /// tiles of which `left` are left. False where a result is not finite.
  bool multiply_panel(const float* mixed, int64_t row, int64_t rows, const float* panel,
                      int64_t left, float* to, float* products) const {
    const int64_t width = isa().tile_columns, step = kRows * width + kApart;
    const int64_t vectors = divide_up(min(left, width), isa().vector_floats);
    Gemm g;
    g.a_stride = g.depth = shape.in_channels;
    g.b_stride = g.c_stride = g.column_block = width;
    g.panel_stride = shape.in_channels * width;
    g.row_end = rows;
    g.column_end = vectors * isa().vector_floats;
    for (int64_t i = 0; i < kFactors; ++i) {
      g.a = mixed + i * weight_step, g.b = panel + i * point_step, g.c = products + i * step;
      isa().gemm(g);
    }
    return isa().outputs_of_tiles(products, step, rows, vectors,
                                  bias == nullptr ? nullptr : bias + row, to, kPlaces * phase,
                                  phase);
  }

  /// Puts the outputs of a row's tiles side by side: lines `begin` to `end` behind `first_line`.
  void join_lines(const float* made, int64_t row, int64_t begin, int64_t end) const {
    const int64_t width = shape.out[2];
    float* const to = out + (row * shape.out[1] + 2 * first_line) * width;
    for (int64_t y = begin; y < end; ++y) {
      isa().join_line(made + y % 2 * 2 * phase + y / 2 * planes.length[2], phase, 2, width,
                      to + y * width);
    }
  }

  void join(int64_t job) const {
    const Part mine(min(2 * last_line, shape.out[1]) - 2 * first_line, 2, job, threads);
    for (int64_t k = 0; k < shape.out_channels; ++k) {
      join_lines(outputs + k * kPlaces * phase, k, mine.begin, mine.end);
    }
  }

  bool are_finite() const {
    bool finite = true;
    for (int64_t job = 0; job < threads; ++job) finite &= *own_floats(job) == 1.0f;
    return finite;
  }

  /// One group of an image. False where a result is not finite.
  bool convolve(Context& context) {
    first_line = 0;
    run(context, &Tiles::prepare);
    for (; first_line < all_lines; first_line = last_line) {
      last_line = min(first_line + lines, all_lines);
      run(context, &Tiles::multiply);
      if (!are_finite()) return false;
      if (!is_deep) run(context, &Tiles::join);
    }
    return true;
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
  const Tiles tiles(s, 1);
  // Threads meet once more than in a sweep.
  const Checked work = Checked(s.in_channels) * s.out_channels * s.out_size();
  const Checked tensors = Checked(s.in_channels) * (s.in_size() + s.out_channels * kTaps) +
                          Checked(s.out_channels) * s.out_size();
  return s.out_size() >= kFewPoints && tiles.planes.is_worthwhile(s) &&
         work.value_or(INT64_MAX) >= (context.num_threads() > 1 ? 4 * kWork : kWork) &&
         3 * kPlaces * tiles.columns_of(tiles.all_lines) <= 4 * s.out_size() &&
         tiles.floats().value_or(INT64_MAX) <= 2 * tensors.value_or(0);
}

Result<bool> convolve_winograd(Context& context, const ConvShape& shape, const float* input,
                               const float* weight, const float* bias, float* out) {
  const Checked work = Checked(shape.out_channels) * shape.in_channels * shape.out_size() * 4;
  Tiles tiles(shape, useful_threads(context, work));
  ETX_TRY(tiles.allocate(context));
  for (int64_t group = 0; group < shape.groups; ++group) {
    const int64_t row = group * shape.out_channels;
    tiles.bias = bias == nullptr ? nullptr : bias + row;
    for (int64_t i = 0; i < shape.batch; ++i) {
      const int64_t p = i * shape.groups + group;
      const bool is_mixed = i > 0 && !tiles.is_deep;
      tiles.image = input + p * shape.in_channels * shape.in_size();
      tiles.weight = is_mixed ? nullptr : weight + row * shape.in_channels * kTaps;
      tiles.out = out + p * shape.out_channels * shape.out_size();
      if (!tiles.convolve(context)) return false;
    }
  }
  return true;
}

}  // namespace etx::portable
