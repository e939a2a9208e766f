// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "ops/conv/conv_sweep.h"
#include "ops/conv/padded_planes.h"

namespace etx::portable {
namespace {

constexpr int kAxes = ConvShape::kAxes;
/// Outputs made before they are moved to where they belong, so that they are still in the cache.
constexpr int64_t kChunk = 4096;

struct Depthwise {
  const ConvShape& shape;
  PaddedPlanes planes;
  int64_t lines;
  int32_t* offsets = nullptr;

  explicit Depthwise(const ConvShape& s) : shape(s), planes(s) {
    lines = kChunk / planes.length[2];
    lines = lines < 1 ? 1 : min(lines, s.out[1]);
  }

  int64_t padded_floats() const { return planes.channel() + PaddedPlanes::kSlack; }
  int64_t floats() const {
    return padded_floats() + lines * planes.length[2] + PaddedPlanes::kSlack;
  }

  void plan() {
    int64_t tap = 0;
    for (int64_t z = 0; z < shape.kernel[0]; ++z) {
      for (int64_t y = 0; y < shape.kernel[1]; ++y) {
        for (int64_t x = 0; x < shape.kernel[2]; ++x) {
          const int64_t at[kAxes] = {z * shape.dilation[0], y * shape.dilation[1],
                                     x * shape.dilation[2]};
          offsets[tap++] = static_cast<int32_t>(planes.offset(at));
        }
      }
    }
  }

  void run_channel(const float* padded, const float* w, float bias, float* made, float* out) const {
    const int64_t width = planes.length[2];
    for (int64_t z = 0; z < shape.out[0]; ++z) {
      for (int64_t y = 0; y < shape.out[1]; y += lines) {
        const int64_t count = min(shape.out[1] - y, lines);
        const float* const from = padded + (z * planes.length[1] + y) * width;
        isa().window(from, offsets, w, shape.taps(), bias, made,
                     (count - 1) * width + shape.out[2]);
        isa().pad_lines(made, width, count, 0, shape.out[2], 1, 0.0f, out, shape.out[2]);
        out += count * shape.out[2];
      }
    }
  }
};

}  // namespace

Error depthwise_convolution(Context& context, const ConvShape& shape, const float* input,
                            const float* weight, const float* bias, float* out) {
  Depthwise work(shape);
  const int64_t planes = shape.batch * shape.groups, multiple = shape.out_channels;
  const int64_t taps = shape.taps();
  const Checked products = Checked(planes) * multiple * taps * shape.out_size();
  const int64_t threads = useful_threads(context, products);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * work.floats() + taps,
                            "not enough temporary memory for padded channels"));
  work.offsets = reinterpret_cast<int32_t*>(memory + threads * work.floats());
  work.plan();
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      float* const padded = memory + job * work.floats();
      float* const made = padded + work.padded_floats();
      memset(padded + work.planes.channel(), 0, PaddedPlanes::kSlack * sizeof(float));
      const Part part(planes, 1, job, threads);
      for (int64_t p = part.begin; p < part.end; ++p) {
        work.planes.copy_channel(input + p * shape.in_size(), padded);
        for (int64_t i = 0; i < multiple; ++i) {
          const int64_t row = p % shape.groups * multiple + i;
          work.run_channel(padded, weight + row * taps, bias == nullptr ? 0.0f : bias[row], made,
                           out + (p * multiple + i) * shape.out_size());
        }
      }
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
