// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_DEPTHWISE_H_
#define ETX_PORTABLE_LEVEL_DEPTHWISE_H_

/// Depthwise convolution of one plane: lines are copied with zeros around them into a strip that
/// stays in the cache, and several lines of outputs share what is read of it.

#include <cstring>
#include <type_traits>

#include "isa/isa.h"
#include "isa/level/pad_lines.h"
#include "isa/level/transpose.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

/// Kernels of their own for common squares, where there are registers for them.
#if ETX_SIMD_BYTES >= 32 || defined(__aarch64__)
constexpr bool kSquares = true;
#else
constexpr bool kSquares = false;
#endif

/// even[i] = x[2 i] and odd[i] = x[2 i + 1] of a line of `n` floats, `evens` and `odds` of them.
inline void part_line(const float* x, [[maybe_unused]] int64_t n, float* even, int64_t evens,
                      float* odd, int64_t odds) {
  int64_t i = 0;
#if defined(ETX_HAS_SHUFFLE)
  for (; 2 * (i + kLanes) <= n && i + kLanes <= evens && i + kLanes <= odds; i += kLanes) {
    const VecF low = load(x + 2 * i), high = load(x + 2 * i + kLanes);
    store(even + i, even_lanes(low, high));
    store(odd + i, odd_lanes(low, high));
  }
  if (kLanes >= 8 && n - 2 * i <= 2 * kLanes && evens - i <= kLanes && odds - i <= kLanes) {
    const int64_t left = n - 2 * i, lanes = left < kLanes ? left : kLanes;
    const VecF low = load_part(x + 2 * i, static_cast<size_t>(lanes));
    const VecF high = load_part(x + 2 * i + lanes, static_cast<size_t>(left - lanes));
    store_part(even + i, even_lanes(low, high), static_cast<size_t>(evens - i));
    store_part(odd + i, odd_lanes(low, high), static_cast<size_t>(odds - i));
    return;
  }
#endif
  for (int64_t j = i; j < evens; ++j) even[j] = x[2 * j];
  for (int64_t j = i; j < odds; ++j) odd[j] = x[2 * j + 1];
}

/// Where the elements of a line that leave the remainder `parity` begin in a strip whose lines have
/// two phases, and how many of them it has.
struct Half {
  int64_t begin, count;
  Half(const Depthwise& d, int64_t parity) {
    const int64_t at = d.padding[1] + parity, first = at / 2, room = d.phase - first;
    begin = at % 2 * d.phase + first;
    count = (d.in[1] + 1 - parity) / 2;
    if (count > room) count = room < 0 ? 0 : room;
  }
};

/// As `fill_strip` does for a horizontal stride of 2, which reads each line once.
inline void fill_halves(const Depthwise& d, const float* x, int64_t top, int64_t lines) {
  const Half even(d, 0), odd(d, 1);
  float* to = d.strip;
  for (int64_t line = top; line < top + lines; ++line, to += 2 * d.phase) {
    if (line >= 0 && line < d.in[0]) {
      part_line(x + line * d.in[1], d.in[1], to + even.begin, even.count, to + odd.begin,
                odd.count);
    } else {
      memset(to, 0, static_cast<size_t>(2 * d.phase) * sizeof(float));
    }
  }
}

/// Copies the lines of x that outputs from line `y` on read, `lines` of them.
inline void fill_strip(const Depthwise& d, const float* x, int64_t y, int64_t lines) {
  const int64_t top = y * d.stride[0] - d.padding[0];
  const bool by_halves = d.phases == 2 && d.stride[1] == 2 && d.padding[1] >= 0;
  if (!kIsSmall && by_halves) return fill_halves(d, x, top, lines);
  for (int64_t phase = 0; phase < d.phases; ++phase) {
    const int64_t shift = phase - d.padding[1], step = d.stride[1];
    const int64_t begin = shift >= 0 ? 0 : (step - 1 - shift) / step;
    const int64_t last = d.in[1] - 1 - shift;
    int64_t end = last < 0 ? 0 : last / step + 1;
    if (end > d.phase) end = d.phase;
    if (begin >= end) continue;
    float* to = d.strip + phase * d.phase + begin;
    for (int64_t line = top; line < top + lines; ++line, to += d.phase * d.phases) {
      if (line < 0 || line >= d.in[0]) {
        memset(to, 0, static_cast<size_t>(end - begin) * sizeof(float));
      } else {
        copy_step(x + line * d.in[1] + begin * step + shift, step, to, end - begin);
      }
    }
  }
}

/// in[s + i S] = the vector at x[i], as far as there are K. Where a load across cache lines costs
/// more than a shift, x is at the beginning of one.
template <int K, int S>
inline void load_run(const float* x, int s, VecF (&in)[K]) {
#if ETX_SIMD_BYTES == 64
  const auto a = (__m512i)load(x), b = (__m512i)load(x + kLanes);
  in[s] = (VecF)a;
  if (s + S < K) in[s + S] = (VecF)_mm512_alignr_epi32(b, a, 1);
  if (s + 2 * S < K) in[s + 2 * S] = (VecF)_mm512_alignr_epi32(b, a, 2);
  if (s + 3 * S < K) in[s + 3 * S] = (VecF)_mm512_alignr_epi32(b, a, 3);
  if (s + 4 * S < K) in[s + 4 * S] = (VecF)_mm512_alignr_epi32(b, a, 4);
#else
  ETX_UNROLL
  for (int i = 0; s + i * S < K; ++i) in[s + i * S] = load(x + i);
#endif
}

/// Square kernels of K taps a side, strides S: what is read serves all lines that it reaches.
template <int K, int S>
struct SquareTaps {
  static constexpr int kLines = K == 3 || ETX_SIMD_BYTES == 64 ? 7 : 4;
  static constexpr int kFewer =
      ETX_SIMD_BYTES == 32 && K == 5 && S == 1 ? 2 : 0;  ///< For lines left.

  template <int R>
  static inline void add(const Depthwise& d, const float* x, const float* w, VecF (&sums)[R]) {
    const int64_t line = d.line / S;
    ETX_UNROLL
    for (int r = 0; r < (R - 1) * S + K; ++r) {
      VecF in[K];
      ETX_UNROLL
      for (int s = 0; s < S; ++s) load_run<K, S>(x + r * line + s * d.phase, s, in);
      ETX_UNROLL
      for (int i = 0; i < R; ++i) {
        const int tap = r - i * S;
        if (tap < 0 || tap >= K) continue;
        ETX_UNROLL
        for (int k = 0; k < K; ++k) sums[i] = sums[i] + in[k] * w[tap * K + k];
      }
    }
  }
};

struct AnyTaps {
  static constexpr int kLines = 4;

  template <int R>
  static inline void add(const Depthwise& d, const float* x, const float* w, VecF (&sums)[R]) {
    for (int64_t t = 0; t < d.taps; ++t) {
      const float* const from = x + d.offsets[t];
      ETX_UNROLL
      for (int i = 0; i < R; ++i) sums[i] = sums[i] + load(from + i * d.line) * w[t];
    }
  }
};

/// R lines of outputs. A vector that reaches over a line's end is stored whole where the lines
/// behind it are still to come, `left` floats of the plane with this one.
template <class Taps, int R>
inline void make_lines(const Depthwise& d, const float* x, const float* w, float bias, float* y,
                       int64_t left) {
  const int64_t width = d.out[1];
  for (int64_t column = 0; column < width; column += kLanes) {
    const int64_t at = width - column >= kLanes || width < kLanes ? column : width - kLanes;
    VecF sums[R];
    ETX_UNROLL
    for (int i = 0; i < R; ++i) sums[i] = splat(bias);
    Taps::template add<R>(d, x + at, w, sums);
    ETX_UNROLL
    for (int i = 0; i < R; ++i) {
      if (left - i * width - at >= kLanes) {
        store(y + i * width + at, sums[i]);
      } else {
        store_part(y + i * width + at, sums[i], static_cast<size_t>(width - at));
      }
    }
  }
}

/// Lines behind those that a square kernel makes together, or of any other.
void make_rest(const Depthwise& d, const float* x, const float* w, float bias, float* y,
               int64_t lines, int64_t left);

template <class Taps, int R = Taps::kLines>
inline void make_strip(const Depthwise& d, const float* x, const float* w, float bias, float* y,
                       int64_t lines, int64_t left) {
  for (; lines >= R; lines -= R, left -= R * d.out[1]) {
    make_lines<Taps, R>(d, x, w, bias, y, left);
    x += R * d.line;
    y += R * d.out[1];
  }
  if constexpr (!std::is_same_v<Taps, AnyTaps>) {
    if constexpr (R > Taps::kFewer && Taps::kFewer > 0) {
      make_strip<Taps, Taps::kFewer>(d, x, w, bias, y, lines, left);
    } else {
      make_rest(d, x, w, bias, y, lines, left);
    }
  } else if constexpr (R > 1) {
    make_strip<AnyTaps, R / 2>(d, x, w, bias, y, lines, left);
  }
}

ETX_NOINLINE void make_rest(const Depthwise& d, const float* x, const float* w, float bias,
                            float* y, int64_t lines, int64_t left) {
  make_strip<AnyTaps>(d, x, w, bias, y, lines, left);
}

using MakeStrip = void (*)(const Depthwise&, const float*, const float*, float, float*, int64_t,
                           int64_t);

inline MakeStrip strip_maker(const Depthwise& d) {
  if constexpr (kSquares) {
    const int64_t side = d.kernel[0], stride = d.stride[0];
    const bool is_strip = d.line == stride * d.phases * d.phase;
    const bool is_square = side == d.kernel[1] && d.taps == side * side;
    if (is_strip && is_square && stride == d.stride[1] && d.dilation[0] == 1 &&
        d.dilation[1] == 1) {
      if (side == 3 && stride == 1) return make_strip<SquareTaps<3, 1>>;
      if (side == 3 && stride == 2) return make_strip<SquareTaps<3, 2>>;
      if (side == 5 && stride == 1) return make_strip<SquareTaps<5, 1>>;
      if (side == 5 && stride == 2) return make_strip<SquareTaps<5, 2>>;
    }
  }
  return make_rest;
}

void depthwise(const Depthwise& d, const float* x, const float* w, float bias, float* y) {
  const MakeStrip make = strip_maker(d);
  for (int64_t begin = 0; begin < d.out[0]; begin += d.lines) {
    const int64_t behind = d.out[0] - begin, lines = behind < d.lines ? behind : d.lines;
    const int64_t reach = (d.kernel[0] - 1) * d.dilation[0] + 1;
    if (x != nullptr) fill_strip(d, x, begin, (lines - 1) * d.stride[0] + reach);
    make(d, d.strip, w, bias, y + begin * d.out[1], lines, behind * d.out[1]);
  }
}

/// P points that follow each other in a line.
template <int P>
inline void sum_points(const Depthwise& d, const float* x, const float* w, int64_t lines,
                       VecF start, float* y) {
  const int64_t step = d.stride[1] * kLanes, next = d.dilation[1] * kLanes;
  VecF sums[P];
  ETX_UNROLL
  for (int i = 0; i < P; ++i) sums[i] = start;
  for (int64_t ky = 0; ky < lines; ++ky, x += d.dilation[0] * d.phase * kLanes) {
    const float* from = x;
    for (int64_t kx = 0; kx < d.kernel[1]; ++kx, from += next, w += kLanes) {
      const VecF tap = load(w);
      ETX_UNROLL
      for (int i = 0; i < P; ++i) sums[i] = sums[i] + load(from + i * step) * tap;
    }
  }
  ETX_UNROLL
  for (int i = 0; i < P; ++i) store(y + i * kLanes, sums[i]);
}

void depthwise_line(const Depthwise& d, const float* x, const float* w, int64_t lines,
                    const float* bias, float* y) {
  const VecF start = load(bias);
  for (int64_t i = 0; i < d.out[1];) {
    const float* const from = x + i * d.stride[1] * kLanes;
    if (d.out[1] - i > 4) {
      sum_points<8>(d, from, w, lines, start, y + i * kLanes), i += 8;
    } else {
      sum_points<4>(d, from, w, lines, start, y + i * kLanes), i += 4;
    }
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_DEPTHWISE_H_
