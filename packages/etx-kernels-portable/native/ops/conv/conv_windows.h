// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONV_WINDOWS_H_
#define ETX_PORTABLE_CONV_WINDOWS_H_

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "ops/conv/conv_reach.h"
#include "ops/conv/conv_shape.h"
#include "ops/linalg/product.h"

namespace etx::portable {

/// out += w * in for one tap and one pair of channels.
template <typename T>
[[gnu::noinline]] void add_tap(const ConvShape& s, int64_t tap, T w, const T* in, T* out) {
  const auto [z, y, x] = TapReach(s, tap);
  const int64_t* const coarse = s.transposed ? s.in : s.out;
  const int64_t* const fine = s.transposed ? s.out : s.in;
  const int64_t points = x.end - x.begin, step = x.stride;
  if (points <= 0) return;
  for (int64_t cz = z.begin; cz < z.end; ++cz) {
    for (int64_t cy = y.begin; cy < y.end; ++cy) {
      const int64_t near = (cz * coarse[1] + cy) * coarse[2] + x.begin;
      const int64_t far = (z.fine(cz) * fine[1] + y.fine(cy)) * fine[2] + x.fine(x.begin);
      const T* from = in + (s.transposed ? near : far);
      T* to = out + (s.transposed ? far : near);
      if (step == 1) {
        for (int64_t i = 0; i < points; ++i) to[i] = static_cast<T>(to[i] + times(w, from[i]));
        continue;
      }
      for (int64_t i = 0; i < points; ++i, from += s.transposed ? 1 : step) {
        *to = static_cast<T>(*to + times(w, *from));
        to += s.transposed ? step : 1;
      }
    }
  }
}

template <typename T>
Error convolve_plain(const ConvShape& s, const T* input, const T* weight, const T* bias, T* out) {
  const int64_t taps = s.taps(), outputs = s.groups * s.out_channels;
  for (int64_t p = 0; p < s.batch * outputs; ++p) {
    const int64_t image = p / outputs, channel = p % outputs;
    const int64_t group = channel / s.out_channels, oc = channel % s.out_channels;
    T* const to = out + p * s.out_size();
    for (int64_t i = 0; i < s.out_size(); ++i) to[i] = bias == nullptr ? T{0} : bias[channel];
    for (int64_t ic = 0; ic < s.in_channels; ++ic) {
      const int64_t in_channel = group * s.in_channels + ic;
      const T* const from = input + (image * s.groups * s.in_channels + in_channel) * s.in_size();
      const T* const w = weight + taps * (s.transposed ? in_channel * s.out_channels + oc
                                                       : channel * s.in_channels + ic);
      for (int64_t tap = 0; tap < taps; ++tap) add_tap(s, tap, w[tap], from, to);
    }
  }
  return Error::Ok;
}

/// What the first `count` points of a panel of outputs read.
template <typename T>
struct Windows {
  const ConvShape& s;
  int64_t count = 0;
  int64_t at[kPanel<T>][ConvShape::kAxes] = {};

  Windows(const ConvShape& shape, int64_t first) : s(shape) {
    count = min(kPanel<T>, s.out_size() - first);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t point = first + j, line = point / s.out[2];
      const int64_t out[] = {line / s.out[1], line % s.out[1], point % s.out[2]};
      for (int a = 0; a < ConvShape::kAxes; ++a) at[j][a] = out[a] * s.stride[a] - s.padding[a];
    }
  }

  /// Rows `tap`, `tap` + taps, … of the panel, one for each channel of `in`.
  void fill(int64_t tap, const T* in, T* panel) const {
    const int64_t k[] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1],
                         tap % s.kernel[2]};
    int64_t index[kPanel<T>];
    for (int64_t j = 0; j < kPanel<T>; ++j) {
      index[j] = j < count ? 0 : -1;
      for (int a = 0; a < ConvShape::kAxes && index[j] >= 0; ++a) {
        const int64_t i = at[j][a] + k[a] * s.dilation[a];
        index[j] = i < 0 || i >= s.in[a] ? -1 : index[j] * s.in[a] + i;
      }
    }
    const int64_t taps = s.taps(), size = s.in_size();
    const bool next = index[0] >= 0 && is_run(index);
    for (int64_t ic = 0; ic < s.in_channels; ++ic) {
      const T* const plane = in + ic * size;
      T* const to = panel + (ic * taps + tap) * kPanel<T>;
      if (next) {
        for (int64_t j = 0; j < kPanel<T>; ++j) to[j] = plane[index[0] + j];
      } else {
        for (int64_t j = 0; j < kPanel<T>; ++j) to[j] = index[j] < 0 ? T{0} : plane[index[j]];
      }
    }
  }

  static bool is_run(const int64_t* index) {
    for (int64_t j = 1; j < kPanel<T>; ++j) {
      if (index[j] != index[0] + j) return false;
    }
    return true;
  }
};

/// Panels of windows, gathered one at a time: as much memory as one panel takes.
template <typename T>
Error convolve_panels(Context& context, const ConvShape& s, const T* input, const T* weight,
                      const T* bias, T* out) {
  const int64_t panels = divide_up(s.out_size(), kPanel<T>), depth = s.in_channels * s.taps();
  const auto fill = [&](int64_t i, T* memory) {
    const int64_t part = i / panels, group = part % s.groups;
    const int64_t first = i % panels * kPanel<T>;
    const Windows<T> windows(s, first);
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      windows.fill(tap, input + part * s.in_channels * s.in_size(), memory);
    }
    Product<T> p;
    p.a = weight + group * s.out_channels * depth, p.a_stride = depth;
    p.rows = s.out_channels, p.depth = depth, p.columns = windows.count;
    p.panel = memory;
    p.row_bias = bias == nullptr ? nullptr : bias + group * s.out_channels;
    p.c = out + part * s.out_channels * s.out_size() + first, p.row_step = s.out_size();
    return p;
  };
  const int64_t count = s.batch * s.groups * panels;
  return multiply_panels<T>(context, count, depth,
                            Checked(count) * kPanel<T> * s.out_channels * depth, fill);
}

/// Any convolution by windows that are gathered, without padded planes. `bias` may be null.
template <typename T>
Error convolve_windows(Context& context, const ConvShape& s, const T* input, const T* weight,
                       const T* bias, T* out) {
  if constexpr (!kIsSmall) {
    const bool plain = s.transposed || s.out_channels < 4 || s.in_channels == 0;
    if (!plain) return convolve_panels(context, s, input, weight, bias, out);
  }
  (void)context;
  return convolve_plain(s, input, weight, bias, out);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONV_WINDOWS_H_
