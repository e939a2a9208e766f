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

float* fill_floats(float* to, int64_t n, float value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
  return to + n;
}

}  // namespace

void PaddedPlanes::copy_channel(const float* from, float* to) const {
  const int64_t slots = phases[0] * phases[1] * phases[2];
  for (int64_t slot = 0; slot < slots; ++slot) {
    const int64_t shift_z = slot / phases[2] / phases[1] - padding[0];
    const int64_t shift_y = slot / phases[2] % phases[1] - padding[1];
    const int64_t shift_x = slot % phases[2] - padding[2];
    const Inside y(in[1], stride[1], shift_y, length[1]), x(in[2], stride[2], shift_x, length[2]);
    for (int64_t j = 0; j < length[0]; ++j) {
      const int64_t z = j * stride[0] + shift_z;
      if (z < 0 || z >= in[0]) {
        to = fill_floats(to, length[1] * length[2], fill);
        continue;
      }
      const int64_t lines = y.end - y.begin, count = x.end - x.begin;
      const int64_t line = z * in[1] + y.begin * stride[1] + shift_y;
      const int64_t column = x.begin * stride[2] + shift_x;
      to = fill_floats(to, y.begin * length[2], fill);
      isa().pad_lines(from + line * in[2] + column, stride[1] * in[2], lines, x.begin, count,
                      stride[2], fill, to, length[2]);
      to = fill_floats(to + lines * length[2], (length[1] - y.end) * length[2], fill);
    }
  }
}

void join_phases(const float* from, int64_t next, int64_t phases, int64_t length, int64_t lines,
                 int64_t n, float* to, int64_t to_stride) {
  constexpr int64_t kShort = 8;
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
