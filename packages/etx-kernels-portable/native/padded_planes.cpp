// SPDX-License-Identifier: BSD-3-Clause
#include "padded_planes.h"

#include <cstring>

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
      phases[a] = reach + 1 < s.stride[a] ? reach + 1 : s.stride[a];
      padding[a] = s.padding[a];
      length[a] = s.out[a] + reach / s.stride[a];
    }
  }
}

int64_t PaddedPlanes::offset(const int64_t (&at)[kAxes]) const {
  int64_t slot = 0, point = 0;
  for (int a = 0; a < kAxes; ++a) {
    slot = slot * phases[a] + at[a] % stride[a];
    point = point * length[a] + at[a] / stride[a];
  }
  return slot * plane() + point;
}

void PaddedPlanes::copy_line(const float* from, int64_t phase, float* to) const {
  const int64_t s = stride[2], shift = phase - padding[2];
  int64_t begin = shift >= 0 ? 0 : (-shift + s - 1) / s;
  int64_t end = in[2] - shift <= 0 ? 0 : (in[2] - shift - 1) / s + 1;
  end = end < length[2] ? end : length[2];
  begin = begin < end ? begin : end;
  for (int64_t j = 0; j < begin; ++j) to[j] = fill;
  if (s == 1) {
    if (begin < end) memcpy(to + begin, from + begin + shift, static_cast<size_t>(end - begin) * 4);
  } else if (s == 2) {
    const float* const source = from + shift;
    for (int64_t j = begin; j < end; ++j) to[j] = source[2 * j];
  } else {
    for (int64_t j = begin; j < end; ++j) to[j] = from[j * s + shift];
  }
  for (int64_t j = end; j < length[2]; ++j) to[j] = fill;
}

void PaddedPlanes::copy_channel(const float* from, float* to) const {
  const int64_t slots = phases[0] * phases[1] * phases[2];
  for (int64_t slot = 0; slot < slots; ++slot) {
    const int64_t phase[kAxes] = {slot / phases[2] / phases[1], slot / phases[2] % phases[1],
                                  slot % phases[2]};
    for (int64_t j = 0; j < length[0] * length[1]; ++j, to += length[2]) {
      const int64_t z = j / length[1] * stride[0] + phase[0] - padding[0];
      const int64_t y = j % length[1] * stride[1] + phase[1] - padding[1];
      if (z < 0 || z >= in[0] || y < 0 || y >= in[1]) {
        for (int64_t x = 0; x < length[2]; ++x) to[x] = fill;
      } else {
        copy_line(from + (z * in[1] + y) * in[2], phase[2], to);
      }
    }
  }
}

}  // namespace etx::portable
