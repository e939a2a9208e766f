// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/conv_depthwise.h"

#include <cstring>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "ops/conv/padded_planes.h"

namespace etx::portable {
namespace {

constexpr int kAxes = ConvShape::kAxes;
/// Floats of a strip that is to stay in the first cache.
constexpr int64_t kStrip = 4096;
/// A product here takes as long as so many of a matrix product.
constexpr int64_t kCost = 4;

bool is_flat(const ConvShape& s) {
  return s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.padding[0] == 0;
}

/// What the planes of one call share. An image with a third axis is padded whole.
struct Planes {
  const ConvShape& shape;
  PaddedPlanes padded;
  Depthwise d{};

  explicit Planes(const ConvShape& s) : shape(s), padded(s) {
    for (int a = 0; a < 2; ++a) {
      d.in[a] = s.in[a + 1], d.out[a] = s.out[a + 1], d.kernel[a] = s.kernel[a + 1];
      d.stride[a] = s.stride[a + 1], d.padding[a] = s.padding[a + 1];
      d.dilation[a] = s.dilation[a + 1];
    }
    d.taps = s.taps();
    d.phases = padded.phases[2], d.phase = padded.length[2];
    d.lines = d.out[0];
    d.line = padded.length[2];
    if (!is_flat(s)) return;
    if (!kIsSmall) d.phase = divide_up(d.phase, isa().vector_floats) * isa().vector_floats;
    d.line = d.stride[0] * d.phases * d.phase;
    d.lines =
        min(max<int64_t>((kStrip / (d.phases * d.phase) - reach()) / d.stride[0], 8), d.lines);
  }

  int64_t reach() const { return (d.kernel[0] - 1) * d.dilation[0]; }

  int64_t strip_floats() const {
    if (!is_flat(shape)) return padded.channel() + PaddedPlanes::kSlack;
    const int64_t lines = (d.lines - 1) * d.stride[0] + reach() + 1;
    return lines * d.phases * d.phase + PaddedPlanes::kSlack;
  }

  int64_t offset(int64_t z, int64_t y, int64_t x) const {
    const int64_t at[kAxes] = {z * shape.dilation[0], y * d.dilation[0], x * d.dilation[1]};
    if (!is_flat(shape)) return padded.offset(at);
    return (at[1] * d.phases + at[2] % d.stride[1]) * d.phase + at[2] / d.stride[1];
  }

  void write_offsets(int32_t* to) const {
    for (int64_t z = 0; z < shape.kernel[0]; ++z) {
      for (int64_t y = 0; y < d.kernel[0]; ++y) {
        for (int64_t x = 0; x < d.kernel[1]; ++x) *to++ = static_cast<int32_t>(offset(z, y, x));
      }
    }
  }

  /// `own` has the strip of this thread, which may be filled already.
  void run(const Depthwise& own, const float* input, bool is_filled, const float* w, float bias,
           float* out) const {
    const bool keeps = is_filled && d.lines == d.out[0];
    if (is_flat(shape)) return isa().depthwise(own, keeps ? nullptr : input, w, bias, out);
    Depthwise at = own;
    for (int64_t z = 0; z < shape.out[0]; ++z, out += shape.out[1] * shape.out[2]) {
      isa().depthwise(at, nullptr, w, bias, out);
      at.strip += padded.length[1] * padded.length[2];
    }
  }
};

/// Points that the outputs of a line read, of which four are made together.
int64_t padded_points(const ConvShape& s) {
  return (divide_up(s.out[2], 4) * 4 - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
}

/// True for planes whose lines would leave most of a vector empty, and for kernels so large that it
/// pays to bring the channels side by side.
bool are_channels_better(const ConvShape& s, bool same_kernel) {
  constexpr int64_t kMostLine = 2048, kManyTaps = 25;
  const int64_t channels = same_kernel ? s.batch : s.groups, lanes = isa().vector_floats;
  if (kIsSmall || !is_flat(s) || s.out_channels != 1 || channels < lanes) return false;
  if (s.taps() + padded_points(s) > kMostLine) return false;
  const bool is_square = s.kernel[1] == s.kernel[2] && s.kernel[1] <= 5 && s.stride[1] <= 2 &&
                         s.stride[1] == s.stride[2] && s.dilation[1] * s.dilation[2] == 1;
  int64_t most = max<int64_t>(lanes / 2, 4);
  if (lanes == 8) {
    constexpr int64_t kManyLines = 7;  // Which a 3x3 kernel makes together.
    const bool makes_lines = is_square && s.kernel[1] == 3 && s.stride[1] == 1;
    most = makes_lines && s.out[1] >= kManyLines ? lanes : 2 * lanes;
  }
  return s.out[2] <= most || (!is_square && s.taps() >= kManyTaps);
}

/// Blocks of channels side by side. A part of the outputs is made at a time, from lines of the
/// input that are copied with zeros around them.
struct Channels {
  static constexpr int64_t kFloats = 1 << 17;

  Depthwise d;
  int64_t lanes, reach, in, out;

  Channels(const ConvShape& s, const Depthwise& shared)
      : d(shared), lanes(isa().vector_floats), in(s.in_size()), out(s.out_size()) {
    reach = (d.kernel[0] - 1) * d.dilation[0] + 1;
    d.phase = padded_points(s);
    const int64_t each = d.stride[0] * d.phase + d.out[1];
    d.lines = min(max<int64_t>((kFloats / lanes - reach * d.phase) / each, 8), d.out[0]);
  }

  int64_t lines_read() const { return (d.lines - 1) * d.stride[0] + reach; }
  int64_t read() const { return lines_read() * d.phase; }
  /// One for the bias, four behind the last line of outputs.
  int64_t floats() const {
    const int64_t made = d.lines * d.out[1] + 4, given = min(lines_read(), d.in[0]) * d.in[1];
    return (read() + d.taps + 1 + made + (is_narrow() ? given : 0)) * lanes;
  }
  /// Where lines are so short that they are better turned together, then moved apart.
  bool is_narrow() const { return d.in[1] < 8; }

  /// `stride` floats lie between kernels; where that is 0, all are the same. `bias` may be null.
  void run(int64_t channels, const float* x, const float* w, int64_t stride, const float* bias,
           float* y, float* strip) const {
    float* const taps = strip + read() * lanes;
    float* const start = taps + d.taps * lanes;
    float* const made = start + lanes;
    float* const given = made + (d.lines * d.out[1] + 4) * lanes;
    for (int64_t i = 0; i < channels; ++i) start[i] = bias == nullptr ? 0.0f : bias[i];
    for (int64_t i = 0; stride == 0 && i < channels; ++i) {
      isa().store_transposed(w, 0, 1, d.taps, taps + i, lanes);
    }
    if (stride != 0) isa().store_transposed(w, stride, channels, d.taps, taps, lanes);
    // Columns that no tap reaches are not copied; none may be left.
    const int64_t left = max<int64_t>(d.padding[1], 0), skipped = left - d.padding[1];
    const int64_t count = max<int64_t>(min(d.in[1] - skipped, d.phase - left), 0);
    for (int64_t first = 0; first < d.out[0]; first += d.lines) {
      const int64_t lines = min(d.out[0] - first, d.lines);
      const int64_t top = first * d.stride[0] - d.padding[0], begin = max<int64_t>(top, 0);
      const int64_t end = max(min(top + (lines - 1) * d.stride[0] + reach, d.in[0]), begin);
      const auto bytes = static_cast<size_t>(count * lanes) * sizeof(float);
      if (is_narrow()) {
        isa().store_transposed(x + begin * d.in[1], in, channels, (end - begin) * d.in[1], given,
                               lanes);
      }
      for (int64_t line = 0; line < end - begin; ++line) {
        float* const to = strip + (line * d.phase + left) * lanes;
        if (is_narrow()) {
          memcpy(to, given + (line * d.in[1] + skipped) * lanes, bytes);
        } else {
          isa().store_transposed(x + (begin + line) * d.in[1] + skipped, in, channels, count, to,
                                 lanes);
        }
      }
      for (int64_t line = 0; line < lines; ++line) {
        int64_t at = top + line * d.stride[0], rows = d.kernel[0], tap = 0;
        for (; rows > 0 && at < 0; at += d.dilation[0], tap += d.kernel[1]) --rows;
        while (rows > 0 && at + (rows - 1) * d.dilation[0] >= d.in[0]) --rows;
        const float* const from = strip + (rows > 0 ? at - begin : 0) * d.phase * lanes;
        isa().depthwise_line(d, from, taps + tap * lanes, rows, start,
                             made + line * d.out[1] * lanes);
      }
      isa().store_transposed(made, lanes, lines * d.out[1], channels, y + first * d.out[1], out);
    }
  }
};

/// A block of channels of one image is a piece of work.
Error convolve_channels(Context& context, const ConvShape& shape, bool same_kernel,
                        const Depthwise& d, const float* input, const float* weight,
                        const float* bias, float* out) {
  const Channels work(shape, d);
  const int64_t images = same_kernel ? 1 : shape.batch;
  const int64_t channels = same_kernel ? shape.batch : shape.groups;
  const int64_t blocks = divide_up(channels, work.lanes), floats = work.floats();
  const Checked products = Checked(images) * channels * d.taps * shape.out_size();
  const int64_t threads = useful_threads(context, products * kCost);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * floats, "not enough temporary memory for channels"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      float* const strip = memory + job * floats;
      memset(strip, 0, static_cast<size_t>(floats) * sizeof(float));
      const Part part(images * blocks, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t first = i % blocks * work.lanes, plane = i / blocks * channels + first;
        const int64_t stride = same_kernel ? 0 : d.taps;
        work.run(min(channels - first, work.lanes), input + plane * work.in,
                 weight + first * stride, stride, bias == nullptr ? nullptr : bias + first,
                 out + plane * work.out, strip);
      }
    }
  });
  return Error::Ok;
}

}  // namespace

Error depthwise_convolution(Context& context, const ConvShape& shape, const float* input,
                            const float* weight, const float* bias, float* out) {
  Planes work(shape);
  const bool same_kernel = shape.groups == 1 && bias == nullptr;
  if (are_channels_better(shape, same_kernel)) {
    return convolve_channels(context, shape, same_kernel, work.d, input, weight, bias, out);
  }
  const int64_t planes = shape.batch * shape.groups, multiple = shape.out_channels;
  const int64_t taps = shape.taps(), floats = work.strip_floats();
  const Checked products = Checked(planes) * multiple * taps * shape.out_size();
  const int64_t threads = useful_threads(context, products * kCost);
  ETX_ASSIGN(float* const memory, scratch<float>(context, threads * floats + taps,
                                                 "not enough temporary memory for padded lines"));
  auto* const offsets = reinterpret_cast<int32_t*>(memory + threads * floats);
  work.write_offsets(offsets);
  work.d.offsets = offsets;
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      Depthwise own = work.d;
      own.strip = memory + job * floats;
      memset(own.strip, 0, static_cast<size_t>(floats) * sizeof(float));
      const Part part(planes, 1, job, threads);
      for (int64_t p = part.begin; p < part.end; ++p) {
        const float* const from = input + p * shape.in_size();
        if (!is_flat(shape)) work.padded.copy_channels(from, 1, own.strip);
        for (int64_t i = 0; i < multiple; ++i) {
          const int64_t row = p % shape.groups * multiple + i;
          work.run(own, from, i > 0, weight + row * taps, bias == nullptr ? 0.0f : bias[row],
                   out + (p * multiple + i) * shape.out_size());
        }
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
