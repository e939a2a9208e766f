// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_transposed.h"

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "isa/isa.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

/// Floats of what points add that are to stay in the second cache.
constexpr int64_t kAdded = 65536;

/// to[j][i] = from[i][j].
void turn(const float* from, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kSide = 16;
  for (int64_t i = 0; i < rows; i += kSide) {
    const int64_t last = min(i + kSide, rows);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t r = i; r < last; ++r) to[j * rows + r] = from[r * columns + j];
    }
  }
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
  int64_t depth, width, chunk, threads;  ///< The width is of whole panels.
  float *kernel, *points, *added, *sums;

  ByChannels(Context& context, const ConvShape& shape) : s(shape) {
    depth = s.in_channels;
    width = divide_up(s.taps() * s.out_channels, isa().tile_columns) * isa().tile_columns;
    threads = useful_threads(context, Checked(depth) * width * s.in_size());
    chunk = max<int64_t>(min(kAdded / width, s.in_size()), 1);
  }

  Error allocate(Context& context) {
    const Checked weights = Checked(depth) * width, sizes = Checked(s.in_size()) * depth;
    const Checked floats =
        weights + sizes + Checked(chunk) * width + Checked(s.out_size()) * s.out_channels;
    ETX_ASSIGN(kernel, scratch<float>(context, floats.value_or(-1),
                                      "not enough temporary memory for channels"));
    points = kernel + depth * width;
    added = points + s.in_size() * depth;
    sums = added + chunk * width;
    return Error::Ok;
  }

  void arrange(const float* weight) const {
    const int64_t used = s.taps() * s.out_channels;
    for (int64_t i = 0; i < depth; ++i) {
      float* const to = kernel + i * width;
      turn(weight + i * used, s.out_channels, s.taps(), to);
      for (int64_t j = used; j < width; ++j) to[j] = 0.0f;
    }
  }

  void run(Context& context, const float* image, const float* bias, float* out) const {
    Gemm g;
    g.a_stride = depth;
    g.b = kernel, g.b_stride = width, g.panel_stride = isa().tile_columns;
    g.c = added, g.c_stride = width;
    g.depth = depth, g.column_end = width, g.column_block = column_block(4 * depth);
    turn(image, depth, s.in_size(), points);
    for (int64_t i = 0; i < s.out_size(); ++i) {
      float* const to = sums + i * s.out_channels;
      for (int64_t c = 0; c < s.out_channels; ++c) to[c] = bias == nullptr ? 0.0f : bias[c];
    }
    for (int64_t p = 0; p < s.in_size(); p += chunk) {
      const int64_t count = min(s.in_size() - p, chunk);
      g.a = points + p * depth, g.row_end = count;
      run_gemm(context, g, threads);
      for (int64_t i = 0; i < count; ++i) add_point(s, p + i, added + i * width, sums);
    }
    turn(sums, s.out_size(), s.out_channels, out);
  }
};

}  // namespace

bool is_transposed_by_channels(const ConvShape& s) {
  constexpr int64_t kMostPoints = 512, kLeastChannels = 16;
  return s.transposed && s.in_channels > 0 && s.out_channels >= kLeastChannels &&
         s.in_size() <= kMostPoints;
}

Error convolve_transposed_by_channels(Context& context, const ConvShape& s, const float* input,
                                      const float* weight, const float* bias, float* out) {
  ByChannels work(context, s);
  ETX_TRY(work.allocate(context));
  for (int64_t group = 0; group < s.groups; ++group) {
    work.arrange(weight + group * work.depth * s.taps() * s.out_channels);
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t p = n * s.groups + group;
      work.run(context, input + p * work.depth * s.in_size(),
               bias == nullptr ? nullptr : bias + group * s.out_channels,
               out + p * s.out_channels * s.out_size());
    }
  }
  return Error::Ok;
}

}  // namespace etx::portable
