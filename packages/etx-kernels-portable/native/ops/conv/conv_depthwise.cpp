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

/// True for planes so narrow that their lines would leave most of a vector empty.
bool is_small(const ConvShape& s, bool same_kernel) {
  constexpr int64_t kMostPoints = 2048;
  const int64_t channels = same_kernel ? s.batch : s.groups;
  return !kIsSmall && is_flat(s) && s.out_channels == 1 && channels >= isa().vector_floats &&
         s.out[2] <= max<int64_t>(isa().vector_floats / 2, 4) &&
         s.in_size() + s.taps() <= kMostPoints;
}

/// Blocks of channels of one image are a piece of work.
Error small_convolution(Context& context, const ConvShape& shape, bool same_kernel, Depthwise d,
                        const float* input, const float* weight, const float* bias, float* out) {
  const int64_t images = same_kernel ? 1 : shape.batch;
  const int64_t channels = same_kernel ? shape.batch : shape.groups;
  const int64_t block = 4 * isa().vector_floats, blocks = divide_up(channels, block);
  const int64_t floats = (shape.in_size() + shape.out_size() + d.taps + 1) * block;
  const Checked products = Checked(images) * channels * d.taps * shape.out_size();
  const int64_t threads = useful_threads(context, products * kCost);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * floats, "not enough temporary memory for channels"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      Depthwise own = d;
      own.strip = memory + job * floats;
      memset(own.strip, 0, static_cast<size_t>(floats) * sizeof(float));
      const Part part(images * blocks, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t first = i % blocks * block, plane = i / blocks * channels + first;
        const int64_t rest = channels - first, stride = same_kernel ? 0 : d.taps;
        isa().depthwise_small(
            own, min(rest, block), input + plane * shape.in_size(), weight + first * stride, stride,
            bias == nullptr ? nullptr : bias + first, out + plane * shape.out_size());
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
  if (is_small(shape, same_kernel)) {
    return small_convolution(context, shape, same_kernel, work.d, input, weight, bias, out);
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
        if (!is_flat(shape)) work.padded.copy_channel(from, own.strip);
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
