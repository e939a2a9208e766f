// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/padded_planes.h"

#include "core/min_max.h"
#include "core/shape.h"
#include "core/work.h"

namespace etx::portable {

PaddedPlanes::PaddedPlanes(const ConvShape& s) {
  for (int a = 0; a < kAxes; ++a) {
    const int64_t reach = (s.kernel[a] - 1) * s.dilation[a];
    in[a] = s.in[a];
    if (s.transposed) {
      const int64_t last = (s.out[a] - 1 + s.padding[a]) / s.stride[a];
      stride[a] = 1;
      phases[a] = 1;
      padding[a] = reach / s.stride[a];
      length[a] = last + padding[a] + 1;
    } else {
      stride[a] = s.stride[a];
      phases[a] = s.dilation[a] % s.stride[a] == 0 ? 1 : min(reach + 1, s.stride[a]);
      padding[a] = s.padding[a];
      length[a] = s.out[a] + reach / s.stride[a];
    }
  }
}

void PaddedPlanes::share_padding(const ConvShape& s) {
  if (s.transposed || s.stride[2] != 1) return;
  const int64_t reach = (s.kernel[2] - 1) * s.dilation[2];
  const int64_t behind = s.out[2] + reach - s.in[2] - s.padding[2];
  length[2] -= max<int64_t>(min(min(s.padding[2], behind), min(reach, kMostShared)), 0);
}

bool PaddedPlanes::is_worthwhile(const ConvShape& s) const {
  constexpr int64_t kMostWaste = 64, kSmall = 4096;
  Checked product = 1;
  for (int a = 0; a < kAxes; ++a) product *= Checked(phases[a]) * length[a];
  if (!product.is_within(0, INT32_MAX)) return false;
  return (product.value_or(0) - kSmall) / kMostWaste <= s.in_size() + s.out_size();
}

int64_t PaddedPlanes::offset(const int64_t (&at)[kAxes]) const {
  int64_t slot = 0, point = 0;
  for (int a = 0; a < kAxes; ++a) {
    slot = slot * phases[a] + at[a] % stride[a];
    point = point * length[a] + at[a] / stride[a];
  }
  return slot * plane() + point;
}

namespace {

/// The points j of an axis for which j * stride + shift lies within `size`.
struct Inside {
  int64_t begin, end;
  Inside(int64_t size, int64_t stride, int64_t shift, int64_t length) {
    begin = shift >= 0 ? 0 : divide_up(-shift, stride);
    end = size - shift <= 0 ? 0 : (size - shift - 1) / stride + 1;
    end = min(end, length);
    begin = min(begin, end);
  }
};

[[gnu::noinline]] float* fill_floats(float* to, int64_t n, float value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
  return to + n;
}

}  // namespace

void PaddedPlanes::copy_channels(const float* from, int64_t count, float* to) const {
  constexpr int64_t kNear = 4096;  // Floats that stay in the cache for all phases.
  const int64_t size = in[0] * in[1] * in[2], step = max<int64_t>(kNear / (size + 1), 1);
  for (int64_t first = 0; first < count; first += step) {
    const int64_t channels = min(step, count - first);
    for (int64_t slot = 0; slot < phases[0] * phases[1] * phases[2]; ++slot) {
      copy_phase(from + first * size, slot, channels, to + first * channel() + slot * plane());
    }
  }
}

void PaddedPlanes::copy_phase(const float* from, int64_t slot, int64_t count, float* to) const {
  const int64_t shift_z = slot / phases[2] / phases[1] - padding[0];
  const int64_t shift_y = slot / phases[2] % phases[1] - padding[1];
  const int64_t shift_x = slot % phases[2] - padding[2];
  const Inside y(in[1], stride[1], shift_y, length[1]), x(in[2], stride[2], shift_x, length[2]);
  const int64_t lines = y.end - y.begin, points = x.end - x.begin, above = y.begin * length[2];
  const int64_t below = (length[1] - y.end) * length[2], next = channel() - plane();
  const int64_t line = y.begin * stride[1] + shift_y, column = x.begin * stride[2] + shift_x;
  for (int64_t i = 0; i < count; ++i, from += in[0] * in[1] * in[2], to += next) {
    for (int64_t j = 0; j < length[0]; ++j) {
      const int64_t z = j * stride[0] + shift_z;
      if (z < 0 || z >= in[0]) {
        to = fill_floats(to, length[1] * length[2], fill);
        continue;
      }
      to = fill_floats(to, above, fill);
      isa().pad_lines(from + (z * in[1] + line) * in[2] + column, stride[1] * in[2], lines, x.begin,
                      points, stride[2], fill, to, length[2]);
      to = fill_floats(to + lines * length[2], below, fill);
    }
  }
}

void join_phases(const float* from, int64_t next, int64_t phases, int64_t length, int64_t lines,
                 int64_t n, float* to, int64_t to_stride) {
  constexpr int64_t kShort = 8;
  if (phases == 1 && to_stride == n) {
    isa().pad_lines(from, length, lines, 0, n, 1, 0.0f, to, n);
    return;
  }
  if (n >= kShort) {
    for (int64_t l = 0; l < lines; ++l) {
      isa().join_line(from + l * length, next, phases, n, to + l * to_stride);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const float* const point = from + i % phases * next + i / phases;
    for (int64_t l = 0; l < lines; ++l) to[l * to_stride + i] = point[l * length];
  }
}

}  // namespace etx::portable
