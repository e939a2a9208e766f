// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_transposed.h"

#include <algorithm>
#include <new>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/conv/conv_reach.h"
#include "ops/conv/padded_planes.h"
#include "ops/linalg/gemm.h"
#include "ops/linalg/product.h"

namespace etx::portable {
namespace {

/// Floats of what points add that are to stay in the cache.
constexpr int64_t kAdded = 16384;
/// Points of an input for which the kernel is read once, as it lies.
constexpr int64_t kStreamed = 2;

/// to[j][i] = from[i][j].
void turn(const float* from, int64_t rows, int64_t columns, float* to) {
  isa().store_transposed(from, columns, rows, columns, to, rows);
}

/// Adds what point `p` of the input gives, `added[tap][channel]`, to `sums[point][channel]`.
void add_point(const ConvShape& s, int64_t p, const float* added, float* sums) {
  const int64_t at[] = {p / s.in[2] / s.in[1], p / s.in[2] % s.in[1], p % s.in[2]};
  int64_t first[ConvShape::kAxes];
  for (int a = 0; a < ConvShape::kAxes; ++a) first[a] = at[a] * s.stride[a] - s.padding[a];
  const int64_t channels = s.out_channels;
  for (int64_t line = 0; line < s.kernel[0] * s.kernel[1]; ++line) {
    const int64_t z = first[0] + line / s.kernel[1] * s.dilation[0];
    const int64_t y = first[1] + line % s.kernel[1] * s.dilation[1];
    if (z < 0 || z >= s.out[0] || y < 0 || y >= s.out[1]) continue;
    for (int64_t k = 0; k < s.kernel[2]; ++k) {
      const int64_t x = first[2] + k * s.dilation[2];
      if (x < 0 || x >= s.out[2]) continue;
      float* const to = sums + ((z * s.out[1] + y) * s.out[2] + x) * channels;
      const float* const from = added + (line * s.kernel[2] + k) * channels;
      isa().add(to, from, to, static_cast<size_t>(channels));
    }
  }
}

/// What the images of a call share, and the memory of one group.
struct ByChannels {
  const ConvShape& s;
  int64_t depth, width, next, chunk, threads;  ///< The width is of whole panels.
  float *kernel, *points, *added, *sums;

  ByChannels(Context& context, const ConvShape& shape) : s(shape) {
    depth = s.in_channels;
    width = divide_up(s.taps() * s.out_channels, isa().tile_columns) * isa().tile_columns;
    next = scratch_stride(width);
    threads = useful_threads(context, Checked(depth) * width * s.in_size());
    constexpr int64_t kFew = 8192, kShallow = 16;
    chunk = min(max<int64_t>(kFew / width, depth < kShallow ? 4 : 24), s.in_size());
  }

  Error allocate(Context& context) {
    const Checked weights = Checked(depth) * next, sizes = Checked(s.in_size()) * depth;
    const Checked floats =
        weights + sizes + Checked(chunk) * width + Checked(s.out_size()) * s.out_channels;
    ETX_ASSIGN(kernel, scratch<float>(context, floats.value_or(-1),
                                      "not enough temporary memory for channels"));
    points = kernel + depth * next;
    added = points + s.in_size() * depth;
    sums = added + chunk * width;
    return Error::Ok;
  }

  void arrange(const float* weight) const {
    const int64_t used = s.taps() * s.out_channels;
    for (int64_t i = 0; i < depth; ++i) {
      float* const to = kernel + i * next;
      turn(weight + i * used, s.out_channels, s.taps(), to);
      for (int64_t j = used; j < width; ++j) to[j] = 0.0f;
    }
  }

  Error run(Context& context, const float* image, const float* bias, float* out) const {
    Gemm g;
    g.a_stride = depth;
    g.b = kernel, g.b_stride = next, g.panel_stride = isa().tile_columns;
    g.c = added, g.c_stride = width;
    g.depth = depth, g.column_end = width, g.column_block = column_block(4 * depth);
    turn(image, depth, s.in_size(), points);
    if (bias == nullptr) std::fill_n(sums, s.out_size() * s.out_channels, 0.0f);
    if (bias != nullptr) {
      isa().pad_lines(bias, 0, s.out_size(), 0, s.out_channels, 1, 0.0f, sums, s.out_channels);
    }
    for (int64_t p = 0; p < s.in_size(); p += chunk) {
      const int64_t count = min(s.in_size() - p, chunk);
      g.a = points + p * depth, g.row_end = count;
      run_gemm(context, g, threads);
      for (int64_t i = 0; i < count; ++i) add_point(s, p + i, added + i * width, sums);
    }
    turn(sums, s.out_size(), s.out_channels, out);
    return Error::Ok;
  }
};

/// What each tap of few output channels gives, one product for the points of some lines, then added
/// to where it reaches.
struct ByTaps {
  const ConvShape& s;
  int64_t depth, rows, lines, threads;  ///< A row for each tap of each channel.
  int64_t block;                        ///< Rows that are packed before they are multiplied.
  bool are_few;                         ///< Points: these are turned then, not the kernel.
  bool streams;                         ///< The kernel is read once.
  const float* matrix = nullptr;
  float *turned, *added, *room;
  TapReach* reaches = nullptr;

  ByTaps(Context& context, const ConvShape& shape) : s(shape) {
    depth = s.in_channels, rows = s.taps() * s.out_channels;
    threads = useful_threads(context, Checked(depth) * rows * s.in_size());
    lines = min(max<int64_t>(kAdded / (rows * s.in[2]), 1), s.in[0] * s.in[1]);
    are_few = 2 * s.in_size() < rows;
    streams = are_few && s.in_size() <= kStreamed;
  }

  /// Of the last lines, whose columns need not fill panels.
  int64_t last_points() const { return s.in[0] * s.in[1] % lines * s.in[2]; }

  Error allocate(Context& context) {
    const int64_t points = depth > 1 ? lines * s.in[2] : 0;  // Else these are scaled as they lie.
    const Checked turns = Checked(depth) * (are_few ? s.in_size() : rows);
    constexpr int64_t kPacked = 16384;
    const int64_t tile = isa().tile_columns, panels = max<int64_t>(kPacked / (depth * tile), 1);
    block = min(panels, divide_up(rows, tile)) * tile;
    const int64_t more = streams   ? rows * points
                         : are_few ? threads * block * depth
                                   : max(part_floats(depth, points, threads),
                                         part_floats(depth, last_points(), threads));
    const Checked floats = turns + Checked(rows) * points + more;
    ETX_ASSIGN(turned, scratch<float>(context, floats.value_or(-1),
                                      "not enough temporary memory for taps"));
    added = turned + turns.value_or(0);
    room = added + rows * points;
    ETX_ASSIGN(reaches,
               scratch<TapReach>(context, s.taps(), "not enough temporary memory for taps"));
    for (int64_t tap = 0; tap < s.taps(); ++tap) new (reaches + tap) TapReach(s, tap);
    return Error::Ok;
  }

  void arrange(const float* weight) {
    matrix = are_few ? weight : turned;
    constexpr int64_t kLine = 16;  // Of few rows at a time, what is written stays in the cache.
    for (int64_t row = 0; !are_few && row < rows; row += kLine) {
      isa().store_transposed(weight + row, rows, depth, min(kLine, rows - row),
                             turned + row * depth, depth);
    }
  }

  [[gnu::noinline]] void multiply_few(Context& context, const float* lines_of_points,
                                      int64_t points) const {
    const int64_t tile = isa().tile_columns;
    context.parallel_for(0, threads, 1, [&](int64_t first_job, int64_t last_job) {
      for (int64_t job = first_job; job < last_job; ++job) {
        const Part part(rows, block, job, threads);
        float* const panels = room + job * block * depth;
        Gemm g;
        g.a = lines_of_points, g.a_stride = depth, g.row_end = points;
        g.b = panels, g.b_stride = tile, g.panel_stride = tile * depth;
        g.store = Gemm::Store::Transposed, g.c_stride = points;
        g.depth = depth, g.column_block = block;
        for (int64_t row = part.begin; row < part.end; row += block) {
          g.column_end = min(block, part.end - row);
          g.c = added + row * points;
          isa().pack_rows(matrix + row, rows, g.column_end, depth, panels);
          isa().gemm(g);
        }
      }
    });
  }

  Error multiply_lines(Context& context, const float* image, int64_t at, int64_t points) const {
    if (are_few && at == 0) turn(image, depth, s.in_size(), turned);
    if (streams) {
      float* const made = points == 1 ? added : room;
      ETX_TRY(accumulate_matrices(context, isa().accumulate_float, turned + at * depth, matrix,
                                  sizeof(float), made, 1, points, depth, rows));
      if (points > 1) turn(made, points, rows, added);
    } else if (are_few) {
      multiply_few(context, turned + at * depth, points);
    } else {
      multiply_part(context, matrix, image + at, s.in_size(), added, rows, depth, points,
                    Gemm::Store::Rows, threads, room);
    }
    return Error::Ok;
  }

  /// Adds what `count` lines of the input from `first` on give for one tap to the lines of outputs
  /// from `begin` to `end`.
  void add_lines(const TapReach& reach, const float* from, float scale, int64_t first,
                 int64_t count, int64_t begin, int64_t end, float* out) const {
    const auto& [z, y, x] = reach;
    const int64_t points = x.end - x.begin;
    for (int64_t cz = z.begin; cz < z.end; ++cz) {
      const int64_t from_line = cz * s.in[1] - first, to_line = z.fine(cz) * s.out[1] + y.shift;
      const int64_t above = max<int64_t>(begin - to_line, 0),
                    below = max<int64_t>(end - to_line, 0);
      const bool ends = (y.end - 1) * y.stride >= below;
      const int64_t skipped = above == 0 ? 0 : divide_up(above, y.stride);
      const int64_t top = max(max(y.begin, -from_line), skipped);
      const int64_t bottom = min(ends ? divide_up(below, y.stride) : y.end, count - from_line);
      if (top >= bottom) continue;
      const float* const given = from + (from_line + top) * s.in[2] + x.begin;
      float* const sums = out + (to_line + top * y.stride) * s.out[2] + x.fine(x.begin);
      add_part(given, scale, sums, bottom - top, y.stride * s.out[2], points, x.stride);
    }
  }

  /// Adds `points` of each of `count` lines, times `scale`; more lines than points are the points.
  [[gnu::noinline]] void add_part(const float* given, float scale, float* sums, int64_t count,
                                  int64_t line_step, int64_t points, int64_t step) const {
    constexpr int64_t kFew = 8;
    if (step == 1 && points > kFew) {
      for (int64_t i = 0; i < count; ++i, given += s.in[2], sums += line_step) {
        isa().add_scaled(sums, given, scale, sums, static_cast<size_t>(points));
      }
      return;
    }
    const bool turns = points < count;
    const int64_t inner = turns ? count : points, outer = turns ? points : count;
    const int64_t next = turns ? s.in[2] : 1, to = turns ? line_step : step;
    for (int64_t o = 0; o < outer; ++o) {
      const float* x = given + o * (turns ? 1 : s.in[2]);
      float* y = sums + o * (turns ? step : line_step);
      for (int64_t i = 0; i < inner; ++i, x += next, y += to) *y += *x * scale;
    }
  }

  /// Adds what a single point gives: an output for each tap that reaches one.
  void add_single_point(const float* bias, float* out) const {
    for (int64_t c = 0; c < s.out_channels; ++c) {
      std::fill_n(out + c * s.out_size(), s.out_size(), bias == nullptr ? 0.0f : bias[c]);
    }
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const auto& [z, y, x] = reaches[tap];
      if (z.begin >= z.end || y.begin >= y.end || x.begin >= x.end) continue;
      float* to = out + (z.shift * s.out[1] + y.shift) * s.out[2] + x.shift;
      const float* from = added + tap;
      for (int64_t c = 0; c < s.out_channels; ++c, to += s.out_size(), from += s.taps()) {
        *to += *from;
      }
    }
  }

  Error run(Context& context, const float* image, const float* bias, float* out) const {
    const int64_t all = s.in[0] * s.in[1], each = s.out[0] * s.out[1];
    for (int64_t first = 0; first < all; first += lines) {
      const int64_t count = min(all - first, lines), points = count * s.in[2];
      if (depth > 1) ETX_TRY(multiply_lines(context, image, first * s.in[2], points));
      if (depth > 1 && s.in_size() == 1) {
        add_single_point(bias, out);
        return Error::Ok;
      }
      context.parallel_for(0, threads, 1, [&](int64_t first_job, int64_t last_job) {
        for (int64_t job = first_job; job < last_job; ++job) {
          const Part part(s.out_channels * each, 1, job, threads);
          for (int64_t at = part.begin, next = 0; at < part.end; at = next) {
            const int64_t channel = at / each, begin = at % each;
            next = min(part.end, (channel + 1) * each);
            const int64_t end = begin + next - at;
            float* const plane = out + channel * s.out_size();
            const float start = bias == nullptr ? 0.0f : bias[channel];
            const int64_t made = first == 0 ? (end - begin) * s.out[2] : 0;
            std::fill_n(plane + begin * s.out[2], made, start);
            for (int64_t tap = 0; tap < s.taps(); ++tap) {
              const int64_t row = channel * s.taps() + tap;
              const float* const from = depth == 1 ? image + first * s.in[2] : added + row * points;
              const float scale = depth == 1 ? matrix[row] : 1.0f;
              add_lines(reaches[tap], from, scale, first, count, begin, end, plane);
            }
          }
        }
      });
    }
    return Error::Ok;
  }
};

template <class Work>
Error convolve_groups(Context& context, Work& work, const float* input, const float* weight,
                      const float* bias, float* out) {
  const ConvShape& s = work.s;
  ETX_TRY(work.allocate(context));
  for (int64_t group = 0; group < s.groups; ++group) {
    work.arrange(weight + group * work.depth * s.taps() * s.out_channels);
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t p = n * s.groups + group;
      ETX_TRY(work.run(context, input + p * work.depth * s.in_size(),
                       bias == nullptr ? nullptr : bias + group * s.out_channels,
                       out + p * s.out_channels * s.out_size()));
    }
  }
  return Error::Ok;
}

}  // namespace

Error convolve_transposed_by_taps(Context& context, const ConvShape& s, const float* input,
                                  const float* weight, const float* bias, float* out) {
  ByTaps work(context, s);
  return convolve_groups(context, work, input, weight, bias, out);
}

bool is_transposed_by_channels(const ConvShape& s) {
  constexpr int64_t kMostPoints = 512, kFewPoints = 64, kLeastChannels = 16;
  if (!s.transposed || s.in_channels == 0 || s.out_channels < kLeastChannels) return false;
  // Phases of wide lines that few taps make are permuted into them.
  constexpr int64_t kMostTaps = 9, kLeastLines = 8, kLeastLine = 16;
  const bool has_phases = isa().vector_floats == 16 && (s.stride[2] == 2 || s.stride[2] == 3);
  const bool is_wide = s.in[1] >= kLeastLines && s.in[2] >= kLeastLine;
  if (has_phases && is_wide && s.taps() <= kMostTaps) return false;
  return s.in_size() <= (s.in_channels < kLeastChannels ? kFewPoints : kMostPoints);
}

bool is_transposed_by_taps(const ConvShape& s) {
  constexpr int64_t kLeastDepth = 16, kShort = 4;  // Short lines are added point by point.
  if (!s.transposed || s.in_channels == 0) return false;
  const int64_t depth = s.in_channels, size = s.in_size();
  if (depth < kLeastDepth) {
    if (s.in[0] * s.in[1] == 1 && s.kernel[0] * s.kernel[1] > 1 && s.stride[2] == 1) return true;
    const bool are_few = s.in[2] <= kShort || s.out_channels * s.taps() <= 2 * depth;
    return are_few && !is_transposed_by_channels(s);
  }
  constexpr int64_t kDeep = 32;  // For a point, where its taps are not side by side.
  if (size <= kStreamed && kDeep * size <= depth) return true;
  constexpr int64_t kFew = 16, kLarge = 1 << 21;  // A kernel that had better be read once.
  if (size <= kFew && depth * s.out_channels * s.taps() > kLarge) return true;
  if (s.out_channels * s.taps() <= depth) return true;
  if (is_transposed_by_channels(s)) return false;
  if (s.in[2] <= kShort) return true;
  // What is added to a line is as dear as so many products.
  const int64_t lanes = isa().vector_floats;
  const int64_t plus = s.stride[2] == 1 && s.in[2] > 8 ? 8 : 4 * lanes;
  const PaddedPlanes planes(s);
  if (!planes.is_worthwhile(s)) return false;
  const int64_t swept = planes.plane() * depth + planes.plane() * depth / s.out_channels;
  return 3 * size * (depth + plus) < 2 * swept;
}

Error convolve_transposed_by_channels(Context& context, const ConvShape& s, const float* input,
                                      const float* weight, const float* bias, float* out) {
  ByChannels work(context, s);
  return convolve_groups(context, work, input, weight, bias, out);
}

}  // namespace etx::portable
