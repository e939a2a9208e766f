// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PADDED_PLANES_H_
#define ETX_PORTABLE_PADDED_PLANES_H_

#include <cstdint>

#include "isa/isa.h"
#include "ops/conv/conv_shape.h"

namespace etx::portable {

/// A channel copied with zeros around it and split by the remainder of each coordinate divided by
/// the stride, as far as these occur. Every tap of a convolution then reads, for consecutive
/// outputs, consecutive floats: point q of a plane, plus an offset of the tap. At the end of a line
/// such a sweep runs over points that are not outputs; they are computed and left out.
///
///   plane[phase][j] = input[j * stride + phase - padding]   (on each axis)
struct PaddedPlanes {
  static constexpr int kAxes = ConvShape::kAxes;
  /// Floats behind the last channel that a sweep may read.
  static constexpr int64_t kSlack = 64;
  static constexpr int64_t kMostShared = 16;

  int64_t in[kAxes], stride[kAxes], padding[kAxes];
  int64_t phases[kAxes], length[kAxes];
  float fill = 0.0f;  ///< What lies around the input.

  /// For a convolution, or for the stride-1 convolutions that a transposed one consists of.
  explicit PaddedPlanes(const ConvShape& shape);

  int64_t plane() const { return length[0] * length[1] * length[2]; }
  int64_t channel() const { return phases[0] * phases[1] * phases[2] * plane(); }
  int64_t line_stride(int axis) const {
    return axis == 2 ? 1 : (axis == 1 ? length[2] : length[1] * length[2]);
  }
  /// Lets the zeros in front of a line also be those behind the line before, and behind the last
  /// line what follows the channel: up to kMostShared zeros, which are the caller's to make. Only
  /// for convolutions that are swept.
  void share_padding(const ConvShape& shape);
  /// False where the padding is so much larger than the image and the result that the planes are
  /// not worth making. Products of their sizes fit int64 only where this is true.
  bool is_worthwhile(const ConvShape& shape) const;
  /// Where point `at`, in units of the input with its padding, lies from the channel's begin.
  int64_t offset(const int64_t (&at)[kAxes]) const;
  /// Points to sweep over for outputs of these sizes.
  int64_t sweep(const int64_t (&out)[kAxes]) const {
    return ((out[0] - 1) * length[1] + out[1] - 1) * length[2] + out[2];
  }
  void copy_channels(const float* from, int64_t count, float* to) const;

 private:
  void copy_phase(const float* from, int64_t slot, int64_t count, float* to) const;
};

/// to[l * to_stride + i] = from[i % phases * next + l * length + i / phases] for l < lines, i < n.
void join_phases(const float* from, int64_t next, int64_t phases, int64_t length, int64_t lines,
                 int64_t n, float* to, int64_t to_stride);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PADDED_PLANES_H_
