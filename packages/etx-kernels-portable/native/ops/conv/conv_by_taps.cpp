// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_by_taps.h"

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/conv/conv_reach.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

/// The outputs of one tap that read a point of the image: a box of them, `points` in all.
struct Box {
  const TapReach reach;
  int64_t planes, lines, length, points;

  Box(const ConvShape& s, int64_t tap) : reach(s, tap) {
    const auto& [z, y, x] = reach;
    planes = max<int64_t>(z.end - z.begin, 0), lines = max<int64_t>(y.end - y.begin, 0);
    length = max<int64_t>(x.end - x.begin, 0);
    points = planes * lines * length;
  }

  /// Copies what the outputs of a channel read.
  void read(const ConvShape& s, const float* plane, float* to) const {
    const auto& [z, y, x] = reach;
    for (int64_t i = z.begin; i < z.end; ++i, to += lines * length) {
      const int64_t line = z.fine(i) * s.in[1] + y.fine(y.begin);
      isa().pad_lines(plane + line * s.in[2] + x.fine(x.begin), lines > 1 ? y.stride * s.in[2] : 0,
                      lines, 0, length, length > 1 ? x.stride : 1, 0.0f, to, length);
    }
  }

  /// Adds `made` to the outputs of a channel.
  void add(const ConvShape& s, const float* made, float* plane) const {
    const auto& [z, y, x] = reach;
    const bool is_whole = length == s.out[2];
    const int64_t count = is_whole ? 1 : lines, each = is_whole ? lines * length : length;
    for (int64_t i = z.begin; i < z.end; ++i) {
      float* to = plane + (i * s.out[1] + y.begin) * s.out[2] + x.begin;
      for (int64_t line = 0; line < count; ++line, made += each, to += s.out[2]) {
        isa().add(to, made, to, static_cast<size_t>(each));
      }
    }
  }
};

}  // namespace

bool has_mostly_dead_taps(const ConvShape& s) {
  // Sums of few channels and short lines are added slowly. A float of the kernel is arranged in the
  // time of some products.
  constexpr int64_t kFew = 8, kMany = 32, kLong = 16;
  const int64_t channels = min(s.in_channels, s.out_channels);
  const bool is_short = s.out[2] < kLong;
  const int64_t arranged = is_short ? 90 : 48, parts = s.in_channels < kMany ? 18 : 15;
  if (s.transposed || channels < (is_short ? kMany : kFew)) return false;
  bool is_padded = false;
  for (int a = 0; a < ConvShape::kAxes; ++a) is_padded |= s.padding[a] > s.in[a] / 4;
  if (!is_padded) return false;
  int64_t live = 0;
  for (int64_t tap = 0; tap < s.taps(); ++tap) live += Box(s, tap).points;
  const int64_t all = s.taps() * s.out_size();
  return parts * live < 10 * all && (all - live) * s.batch >= arranged * s.taps();
}

Error convolve_by_taps(Context& context, const ConvShape& s, const float* input,
                       const float* weight, const float* bias, float* out) {
  const int64_t depth = s.in_channels, rows = s.out_channels, size = s.out_size();
  const int64_t taps = s.taps(), kernels = depth * rows;
  int64_t most = 0, room = 0;
  const int64_t threads = useful_threads(context, Checked(kernels) * size);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t points = Box(s, tap).points;
    most = max(most, points), room = max(room, part_floats(depth, points, threads));
  }
  const Checked floats = Checked(taps) * kernels + Checked(depth + rows) * most + room;
  ETX_ASSIGN(float* const matrix,
             scratch<float>(context, floats.value_or(-1), "not enough temporary memory for taps"));
  float* const read = matrix + taps * kernels;
  float* const made = read + depth * most;
  for (int64_t channel = 0; channel < s.batch * s.groups * rows; ++channel) {
    const float start = bias == nullptr ? 0.0f : bias[channel % (s.groups * rows)];
    isa().pad_lines(out, 0, 1, size, 0, 1, start, out + channel * size, size);
  }
  for (int64_t i = 0; i < s.groups * taps; ++i) {
    const int64_t group = i / taps, tap = i % taps;
    if (tap == 0) {
      isa().store_transposed(weight + group * kernels * taps, taps, kernels, taps, matrix, kernels);
    }
    const Box box(s, tap);
    if (box.points == 0) continue;
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t p = n * s.groups + group;
      const float* const image = input + p * depth * s.in_size();
      float* const sums = out + p * rows * size;
      const auto each = [&](int64_t count, const auto& f) {
        context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
          for (int64_t job = begin; job < end; ++job) {
            const Part part(count, 1, job, threads);
            for (int64_t c = part.begin; c < part.end; ++c) f(c);
          }
        });
      };
      each(depth, [&](int64_t c) { box.read(s, image + c * s.in_size(), read + c * box.points); });
      multiply_part(context, matrix + tap * kernels, read, box.points, made, rows, depth,
                    box.points, Gemm::Store::Rows, threads, made + rows * most);
      each(rows, [&](int64_t c) { box.add(s, made + c * box.points, sums + c * size); });
    }
  }
  return Error::Ok;
}

}  // namespace etx::portable
