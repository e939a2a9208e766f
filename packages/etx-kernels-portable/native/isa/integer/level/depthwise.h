// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_DEPTHWISE_H_
#define ETX_PORTABLE_INTEGER_DEPTHWISE_H_

/// Convolutions in which each channel has a filter of its own. Four points above each other are
/// interleaved, so that a lane holds four of a channel, and multiplied by four kernel rows at once;
/// what one column of points becomes serves all windows that it is in, of two rows of the output
/// where the kernel leaves a place of four free.

#include "isa/integer/level/interleave.h"
#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

void flip(const int8_t* from, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<uint8_t>(from[i] ^ static_cast<int8_t>(kOffset));
  }
}

#if defined(ETX_INTEGER_INTERLEAVES)
constexpr int64_t kQuad = 4 * sizeof(VecI);      ///< Four vectors: what `interleave` makes.
constexpr int64_t kSpread = kLaneParts * kQuad;  ///< The same as they are multiplied.
constexpr int kPoints = ETX_SIMD_BYTES == 64 || ETX_SIMD_BYTES == 16 ? 4 : 2;
constexpr int64_t kColumnBytes = 32 * 1024;

inline int64_t quads(const DepthwiseChannels& d) { return (d.kernel[0] + 3) / 4; }
inline int64_t weight_bytes(const DepthwiseChannels& d) { return quads(d) * d.kernel[1] * kSpread; }
/// A group's start, scale and weight, one for each of the rows that it is packed for.
inline int64_t group_bytes(const DepthwiseChannels& d) {
  return 2 * kQuad + (d.paired ? 2 : 1) * weight_bytes(d);
}

int64_t depthwise_bytes(const DepthwiseChannels& d) {
  return (d.channels + kGroup - 1) / kGroup * group_bytes(d);
}

inline VecI load_vector(const void* p) {
  VecI v;
  memcpy(&v, p, sizeof(v));
  return v;
}

/// Four vectors, interleaved and spread.
inline void store_spread(const VecI (&rows)[4], uint8_t* to) {
  VecI y[4];
  interleave(rows, y);
  ETX_UNROLL
  for (int v = 0; v < 4; ++v) {
    VecI parts[kLaneParts];
    spread(y[v], parts);
    ETX_UNROLL
    for (const VecI& part : parts) {
      memcpy(to, &part, sizeof(part));
      to += sizeof(part);
    }
  }
}

/// One vector of `store_spread`.
inline void load_spread(const uint8_t* from, int vector, VecI (&parts)[kLaneParts]) {
  ETX_UNROLL
  for (int i = 0; i < kLaneParts; ++i) {
    parts[i] = load_vector(from + (vector * kLaneParts + i) * ETX_SIMD_BYTES);
  }
}

/// Rows [first, first + 4) that are `stride` bytes apart, interleaved, zeros where there are none.
inline void pack_rows(const uint8_t* x, int64_t stride, int64_t first, int64_t rows, int64_t n,
                      uint8_t* to) {
  VecI row[4] = {};
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t at = first + i;
    if (at >= 0 && at < rows) row[i] = load_bytes_part(x + at * stride, n);
  }
  store_spread(row, to);
}

/// 32-bit operands of a group's channels in the order of lanes.
ETX_NOINLINE void pack_operands(const void* from, int64_t n, uint8_t* to) {
  const uint8_t* const x = static_cast<const uint8_t*>(from);
  uint32_t t[kGroup] = {};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t lane = i / 16, vector = i / 4 % 4;
    memcpy(t + vector * kLanes + lane * 4 + i % 4, x + 4 * i, 4);
  }
  memcpy(to, t, sizeof(t));
}

/// Whether so few channels stand in all lanes of a group, for several points at once.
inline bool is_repeated(int64_t channels) {
  return kLaneParts == 1 && channels < kGroup && channels % 16 == 0 && kGroup % channels == 0;
}

/// Repeats the first `n` bytes of each vector in its others.
inline void repeat_lanes(uint8_t* packed, int64_t bytes, int64_t n) {
  for (int64_t v = 0; v < bytes; v += kGroup) {
    for (int64_t i = n; i < kGroup; i += 16) memcpy(packed + v + i, packed + v + i - n, 16);
  }
}

void pack_depthwise(const DepthwiseChannels& d, uint8_t* to) {
  uint8_t* const packed = to;
  const uint8_t* const weight = reinterpret_cast<const uint8_t*>(d.weight);
  for (int64_t c = 0; c < d.channels; c += kGroup) {
    const int64_t n = d.channels - c < kGroup ? d.channels - c : kGroup;
    pack_operands(d.start + c, n, to);
    pack_operands(d.scale + c, n, to + kQuad);
    to += 2 * kQuad;
    for (int64_t row = 0; row <= static_cast<int64_t>(d.paired); ++row) {
      for (int64_t k = -row; k < d.kernel[0]; k += 4) {
        for (int64_t i = 0; i < d.kernel[1]; ++i, to += kSpread) {
          pack_rows(weight + i * d.channels + c, d.kernel[1] * d.channels, k, d.kernel[0], n, to);
        }
      }
    }
  }
  if (is_repeated(d.channels)) repeat_lanes(packed, group_bytes(d), d.channels);
}

/// Points of the output that are a group together: where the next window begins at the next point,
/// what lies behind a point is the next one.
inline int64_t side_by_side(const DepthwiseRow& d) {
  return d.stride == 1 && is_repeated(d.own.channels) ? kGroup / d.own.channels : 1;
}

inline int64_t columns_of(const DepthwiseRow& d, int64_t points) {
  return (points - 1) * d.stride + (d.own.kernel[1] - 1) * d.dilation + 1;
}

/// Points of the output whose columns are interleaved before they are multiplied: whole groups.
inline int64_t chunk_of(const DepthwiseRow& d) {
  const int64_t unit = kPoints * side_by_side(d);
  const int64_t room = kColumnBytes / (quads(d.own) * kSpread);
  const int64_t reach = (d.own.kernel[1] - 1) * d.dilation;
  const int64_t fits = (room - reach) / d.stride;
  const int64_t most = fits < 4 * kPoints ? 4 * kPoints : fits;
  return ((d.points < most ? d.points : most) + unit - 1) / unit * unit;
}

int64_t depthwise_columns(const DepthwiseRow& d) {
  int64_t bytes = 0;
  const int64_t chunk = chunk_of(d);
  const int64_t columns = columns_of(d, chunk < d.points ? chunk : d.points);
  return __builtin_mul_overflow(columns, quads(d.own) * kSpread, &bytes) ? -1 : bytes;
}

/// Interleaves `count` columns of lines from `at` on.
inline void interleave_columns(const DepthwiseRow& d, int64_t at, int64_t count) {
  uint8_t* to = d.columns;
  const int64_t q = quads(d.own), lines = d.own.kernel[0] + d.rows - 1;
  const uint8_t* line[4];
  for (int64_t k = 0; k < q; ++k, to += kSpread) {
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = 4 * k + i;
      line[i] = d.lines[row < lines ? row : 0] + at;
    }
    uint8_t* column = to;
    for (int64_t x = 0; x < count; ++x, column += q * kSpread) {
      VecI row[4];
      ETX_UNROLL
      for (int i = 0; i < 4; ++i) row[i] = load_vector(line[i] + x * d.own.channels);
      store_spread(row, column);
    }
  }
}

/// Four vectors of sums as one of bytes.
inline VecI join_sums(const Requantize& to_bytes, const VecI (&sums)[4], const VecF (&scale)[4]) {
#if ETX_SIMD_BYTES == 64 || ETX_SIMD_BYTES == 32
  return to_bytes.join(sums, scale);
#else
  VecI y[4];
  ETX_UNROLL
  for (int v = 0; v < 4; ++v) y[v] = to_bytes.from_sums(sums[v], scale[v]);
  return join_bytes(y);
#endif
}

/// Groups of results, `width` apart, from the interleaved columns, `next` apart: bytes of each up
/// to `n`, of all up to `left`.
inline void multiply_columns(const DepthwiseRow& d, const uint8_t* column, int64_t next,
                             const uint8_t* packed, const uint8_t* w, const Requantize& to_bytes,
                             int8_t* out, int64_t width, int64_t n, int64_t left) {
  constexpr int P = kPoints;
  int64_t place[P];  // Where there is no group, the first one again.
  ETX_UNROLL
  for (int p = 0; p < P; ++p) place[p] = p * width < left ? p * next : 0;
  VecI sums[P][4];
  ETX_UNROLL
  for (int v = 0; v < 4; ++v) {
    const VecI start = load_vector(packed + v * ETX_SIMD_BYTES);
    ETX_UNROLL
    for (int p = 0; p < P; ++p) sums[p][v] = start;
  }
  const int64_t q = quads(d.own);
  for (int64_t k = 0; k < q; ++k) {
    const uint8_t* x = column + k * kSpread;
    for (int64_t i = 0; i < d.own.kernel[1]; ++i, x += d.dilation * q * kSpread, w += kSpread) {
      ETX_UNROLL
      for (int v = 0; v < 4; ++v) {
        VecI multiplier[kLaneParts];
        load_spread(w, v, multiplier);
        ETX_UNROLL
        for (int p = 0; p < P; ++p) {
          VecI points[kLaneParts];
          load_spread(x + place[p], v, points);
          sums[p][v] = dot_lanes(sums[p][v], points, multiplier);
        }
      }
    }
  }
  VecF scale[4];
  ETX_UNROLL
  for (int v = 0; v < 4; ++v) {
    scale[v] = load(reinterpret_cast<const float*>(packed + kQuad) + v * kLanes);
  }
  ETX_UNROLL
  for (int p = 0; p < P; ++p) {
    if (left <= 0) return;
    const VecI bytes = join_sums(to_bytes, sums[p], scale);
    store_vector_part(out, bytes, n < left ? n : left);
    out += width, left -= width;
  }
}

void depthwise(const DepthwiseRow& d) {
  const Requantize to_bytes(d.bounds);
  const int64_t side = side_by_side(d), width = side * d.own.channels;
  const int64_t chunk = chunk_of(d), step = side * d.stride * quads(d.own) * kSpread;
  const uint8_t* packed = d.packed;
  for (int64_t c = 0; c < d.own.channels; c += kGroup, packed += group_bytes(d.own)) {
    for (int64_t first = 0; first < d.points; first += chunk) {
      const int64_t count = d.points - first < chunk ? d.points - first : chunk;
      interleave_columns(d, first * d.stride * d.own.channels + c, columns_of(d, count));
      for (int64_t row = 0; row < d.rows; ++row) {
        const uint8_t* const weight = packed + 2 * kQuad + row * weight_bytes(d.own);
        int8_t* const out = d.out + (row * d.points + first) * d.own.channels + c;
        for (int64_t p = 0; p * side < count; p += kPoints) {
          multiply_columns(d, d.columns + p * step, step, packed, weight, to_bytes, out + p * width,
                           width, width - c, (count - p * side) * d.own.channels - c);
        }
      }
    }
  }
}

#else
int64_t depthwise_bytes(const DepthwiseChannels&) { return 0; }
void pack_depthwise(const DepthwiseChannels&, uint8_t*) {}
int64_t depthwise_columns(const DepthwiseRow&) { return 0; }

/// Channels [c, c + n) of one point, counted over rows.
inline void sum_point(const DepthwiseRow& d, int64_t p, int64_t c, int64_t n, int32_t* sums) {
  const int8_t* w = d.own.weight + c;
  const int64_t row = p / d.points, point = p % d.points;
  for (int64_t i = 0; i < n; ++i) sums[i] = d.own.start[c + i];
  for (int64_t ky = 0; ky < d.own.kernel[0]; ++ky) {
    const uint8_t* x = d.lines[row + ky] + point * d.stride * d.own.channels + c;
    for (int64_t kx = 0; kx < d.own.kernel[1]; ++kx) {
      for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<int8_t>(x[i]) * w[i];
      x += d.dilation * d.own.channels;
      w += d.own.channels;
    }
  }
}

void depthwise(const DepthwiseRow& d) {
  constexpr int64_t kWidth = 64;
  const Requantize to_bytes(d.bounds);
  for (int64_t c = 0; c < d.own.channels; c += kWidth) {
    const int64_t n = d.own.channels - c < kWidth ? d.own.channels - c : kWidth;
    for (int64_t p = 0; p < d.rows * d.points; ++p) {
      int32_t sums[kWidth];
      sum_point(d, p, c, n, sums);
      int8_t* const y = d.out + p * d.own.channels + c;
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        store_bytes(y + i, to_bytes.from_sums(load_ints(sums + i), load(d.own.scale + c + i)));
      }
      for (; i < n; ++i) {
        const VecF scale = splat(d.own.scale[c + i]);
        store_bytes_part(y + i, to_bytes.from_sums(splat(sums[i]), scale), 1);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_DEPTHWISE_H_
