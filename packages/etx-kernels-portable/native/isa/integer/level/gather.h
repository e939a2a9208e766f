// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_GATHER_H_
#define ETX_PORTABLE_INTEGER_GATHER_H_

/// Rows on their way into the form of the level: windows of a convolution unfolded, padding filled
/// in, floats quantized, numbers made unsigned or wider as `dot` reads them.

#include "isa/integer/level/dot.h"
#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

constexpr int64_t kChunk = ETX_SIMD_BYTES < 16 ? 16 : ETX_SIMD_BYTES;
constexpr int64_t kShort = 16;
/// What turns int8 into the bytes of the level.
constexpr uint8_t kFlip = kOffset;

inline void copy_chunk(const int8_t* from, uint8_t* to, int64_t n) {
  uint8_t t[kChunk];
  memcpy(t, from, static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) t[i] ^= kFlip;
  memcpy(to, t, static_cast<size_t>(n));
}

/// Copies `n` bytes, and up to kChunk - 1 more where they can be read.
ETX_NOINLINE void copy_run(const int8_t* from, const int8_t* end, int64_t n, uint8_t* to) {
  if (n <= kShort && end - from >= kShort) return copy_chunk(from, to, kShort);
  while (n >= kChunk || (n > 0 && end - from >= kChunk)) {
    copy_chunk(from, to, kChunk);
    from += kChunk, to += kChunk, n -= kChunk;
  }
  for (int64_t i = 0; i < n; ++i, stay_scalar()) to[i] = static_cast<uint8_t>(from[i]) ^ kFlip;
}

inline void fill_run(int8_t value, int64_t n, uint8_t* to) {
  memset(to, static_cast<uint8_t>(value) ^ kFlip, static_cast<size_t>(n));
}

/// Which point of the input lies at `x` of the spaced one; negative where none does.
inline int64_t unspaced(int64_t x, int64_t spacing) {
  if (spacing == 1 || x < 0) return x;
  return x % spacing == 0 ? x / spacing : -1;
}

/// One line of a window whose points lie next to each other.
void copy_line(const Window& w, const int8_t* line, const int8_t* end, int64_t x, uint8_t* to) {
  if (x >= 0 && x + w.kernel[1] <= w.in[1]) {
    return copy_run(line + x * w.pixel, end, w.kernel[1] * w.channels, to);
  }
  const int64_t left = x < 0 ? (x < -w.kernel[1] ? w.kernel[1] : -x) : 0;
  int64_t count = w.in[1] - x;
  count = (count > w.kernel[1] ? w.kernel[1] : count) - left;
  if (count < 0) count = 0;
  const int64_t bytes = w.channels;
  if (left > 0) fill_run(w.fill, left * bytes, to);
  if (count > 0) copy_run(line + (x + left) * w.pixel, end, count * bytes, to + left * bytes);
  const int64_t right = w.kernel[1] - left - count;
  if (right > 0) fill_run(w.fill, right * bytes, to + (left + count) * bytes);
}

/// One line of any window, point by point.
void copy_points(const Window& w, const int8_t* line, const int8_t* end, int64_t x, uint8_t* to) {
  for (int64_t k = 0; k < w.kernel[1]; ++k, x += w.dilation[1], to += w.channels) {
    const int64_t at = unspaced(x, w.spacing[1]);
    if (at >= 0 && at < w.in[1]) {
      copy_run(line + at * w.pixel, end, w.channels, to);
    } else {
      fill_run(w.fill, w.channels, to);
    }
  }
}

/// The line of the input that kernel row `k` reads at output line `oy`; null outside of it.
inline const int8_t* line_of(const Rows& rows, int64_t image, int64_t oy, int64_t k) {
  const Window& w = *rows.window;
  const int64_t y = oy * w.stride[0] - w.before[0] + k * w.dilation[0];
  const int64_t at = unspaced(y, w.spacing[0]);
  if (at < 0 || at >= w.in[0]) return nullptr;
  return rows.x + (image * w.in[0] + at) * w.in[1] * w.pixel;
}

/// Points of a line of a window lie next to each other.
inline bool is_by_line(const Window& w) {
  return w.dilation[1] == 1 && w.spacing[1] == 1 && w.channels == w.pixel;
}

void gather_window(const Rows& rows, int64_t image, int64_t oy, int64_t ox, uint8_t* to) {
  const Window& w = *rows.window;
  const int64_t line_bytes = w.kernel[1] * w.channels;
  const int64_t x = ox * w.stride[1] - w.before[1];
  for (int64_t k = 0; k < w.kernel[0]; ++k, to += line_bytes) {
    const int8_t* const line = line_of(rows, image, oy, k);
    if (line == nullptr) {
      fill_run(w.fill, line_bytes, to);
    } else if (is_by_line(w)) {
      copy_line(w, line, rows.end, x, to);
    } else {
      copy_points(w, line, rows.end, x, to);
    }
  }
}

/// Where a row's bytes are put before `widen` makes pairs of them.
inline uint8_t* narrow_place(uint8_t* row, int64_t steps) {
  return row + steps * (kStepBytes - kBlockDepth);
}

/// Bytes (0, 1, 2, 3) become int16 (0, 2) and (1, 3). Of vectors, whole ones are read and written:
/// less than kGatheredSlack behind the last.
inline void widen(const uint8_t* from, uint8_t* to, int64_t steps) {
#if defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
  for (int64_t i = 0; i < steps; i += 4) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 4 * i));
    __m128i pairs[2] = {_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8),
                        _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8)};
    for (__m128i& p : pairs) p = _mm_shufflehi_epi16(_mm_shufflelo_epi16(p, 0xD8), 0xD8);
    memcpy(to + 8 * i, pairs, sizeof(pairs));
  }
#else
  for (int64_t i = 0; i < steps; ++i) {
    int8_t b[4];
    memcpy(b, from + 4 * i, sizeof(b));
    const int16_t pairs[4] = {b[0], b[2], b[1], b[3]};
    memcpy(to + 8 * i, pairs, sizeof(pairs));
  }
#endif
}
inline void widen(uint8_t* row, int64_t steps) {
  if (kStepBytes != kBlockDepth) widen(narrow_place(row, steps), row, steps);
}

/// Puts the pairs of a row that is gathered alone in the order of its numbers.
inline void put_in_order(uint8_t* row, int64_t steps) {
#if defined(ETX_INTEGER_LONE_ROWS)
  for (int64_t i = 0; i < steps; i += 2) {
    __m128i* const pairs = reinterpret_cast<__m128i*>(row + i * kStepBytes);
    const __m128i low = _mm_shufflelo_epi16(_mm_loadu_si128(pairs), 0xD8);
    _mm_storeu_si128(pairs, _mm_shufflehi_epi16(low, 0xD8));
  }
#else
  (void)row, (void)steps;
#endif
}

/// A row of bytes that lie next to each other; what follows the depth is multiplied by zeros.
inline void gather_row(const int8_t* x, const int8_t* end, int64_t depth, int64_t steps,
                       uint8_t* to) {
  if (kStepBytes != kBlockDepth && end - x >= steps * kBlockDepth + kChunk) {
    return widen(reinterpret_cast<const uint8_t*>(x), to, steps);
  }
  copy_run(x, end, depth, narrow_place(to, steps));
  widen(to, steps);
}

/// Windows of few lines that lie inside of the lines of the input.
class InnerWindows {
 public:
  /// Points [first, end) of output line `oy` have such windows.
  int64_t first = 0, end = 0;

  InnerWindows(const Rows& rows, int64_t image, int64_t oy) : w_(*rows.window) {
    const int64_t reach = w_.in[1] - w_.kernel[1] + w_.before[1];
    if (!is_by_line(w_) || w_.kernel[0] > kMost || reach < 0 || bytes() == 0) return;
    first = (w_.before[1] + w_.stride[1] - 1) / w_.stride[1];
    end = reach / w_.stride[1] + 1;
    end = end < w_.out[1] ? end : w_.out[1];
    for (int64_t k = 0; k < w_.kernel[0]; ++k) {
      const int8_t* const line = line_of(rows, image, oy, k);
      line_[k] = line;
      if (line == nullptr) continue;
      const int64_t room = rows.end - line - width() + w_.before[1] * w_.pixel;
      const int64_t readable = room < 0 ? 0 : room / (w_.stride[1] * w_.pixel) + 1;
      end = end < readable ? end : readable;
    }
  }

  /// Copies those of `count` points from `ox` on, to rows `stride` bytes apart.
  void copy(int64_t ox, int64_t count, uint8_t* to, int64_t stride, int64_t steps) const {
    if (bytes() <= kShort) return copy<kShort, true>(ox, count, to, stride, steps);
    copy<kChunk, false>(ox, count, to, stride, steps);
  }

 private:
  static constexpr int64_t kMost = 8;  ///< Kernel rows.

  int64_t bytes() const { return w_.kernel[1] * w_.channels; }
  /// What is read of a line.
  int64_t width() const {
    return bytes() <= kShort ? kShort : (bytes() + kChunk - 1) / kChunk * kChunk;
  }

  /// `once`: a line is no longer than a chunk.
  template <int64_t chunk, bool once>
  void copy(int64_t ox, int64_t count, uint8_t* to, int64_t stride, int64_t steps) const {
    const int64_t kernel_rows = w_.kernel[0], bytes = this->bytes();
    int64_t x = (ox * w_.stride[1] - w_.before[1]) * w_.pixel;
    for (; count > 0; --count, to += stride, x += w_.stride[1] * w_.pixel) {
      uint8_t* line = narrow_place(to, steps);
      for (int64_t k = 0; k < kernel_rows; ++k, line += bytes) {
        if (line_[k] == nullptr) {
          fill_run(w_.fill, bytes, line);
          continue;
        }
        copy_chunk(line_[k] + x, line, chunk);
        for (int64_t i = chunk; !once && i < bytes; i += chunk) {
          copy_chunk(line_[k] + x + i, line + i, chunk);
        }
      }
      widen(to, steps);
    }
  }

  const Window& w_;
  const int8_t* line_[kMost];
};

/// Points [ox, ox + count) of a line of the output.
void gather_line(const Rows& rows, int64_t image, int64_t oy, int64_t ox, int64_t count,
                 uint8_t* to, int64_t stride, int64_t steps) {
  const InnerWindows inner(rows, image, oy);
  for (int64_t end = ox + count; ox < end;) {
    const int64_t last = inner.end < end ? inner.end : end;
    const int64_t n = ox >= inner.first && ox < last ? last - ox : 1;
    if (ox >= inner.first && ox < last) {
      inner.copy(ox, n, to, stride, steps);
    } else {
      gather_window(rows, image, oy, ox, narrow_place(to, steps));
      widen(to, steps);
    }
    ox += n, to += n * stride;
  }
}

void gather_all(const Rows& rows, int64_t begin, int64_t end, int64_t steps, uint8_t* to,
                int64_t stride) {
  if (rows.window == nullptr) {
    for (int64_t row = begin; row < end; ++row, to += stride) {
      gather_row(rows.x + row * rows.stride, rows.end, rows.depth, steps, to);
    }
    return;
  }
  const int64_t width = rows.window->out[1], height = rows.window->out[0];
  int64_t x = begin % width, y = begin / width % height, image = begin / width / height;
  for (int64_t row = begin; row < end; x = 0) {
    const int64_t count = end - row < width - x ? end - row : width - x;
    gather_line(rows, image, y, x, count, to, stride, steps);
    row += count, to += count * stride;
    if (++y == height) y = 0, ++image;
  }
}

void gather(const Rows& rows, int64_t begin, int64_t end, uint8_t* to, int64_t stride) {
  const int64_t steps = (rows.depth + kBlockDepth - 1) / kBlockDepth;
  gather_all(rows, begin, end, steps, to, stride);
  if (end - begin == 1) put_in_order(to, steps);
}

/// The smallest and the largest of a row and 0: of several vectors at once, none of which waits for
/// another.
inline void extremes(const float* x, int64_t n, float& low, float& high) {
  constexpr int kVectors = ETX_SIMD_BYTES < 32 ? 1 : 4;
  VecF least[kVectors], most[kVectors];
  for (int k = 0; k < kVectors; ++k) least[k] = most[k] = splat(0.0f);
  const auto add = [&](VecF v, int k) ETX_INLINE_LAMBDA {
    least[k] = smallest(least[k], v);
    most[k] = largest(most[k], v);
  };
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    ETX_UNROLL
    for (int k = 0; k < kVectors; ++k) add(load(x + i + k * kLanes), k);
  }
  for (; i + kLanes <= n; i += kLanes) add(load(x + i), 0);
  if (i < n) add(load_part(x + i, static_cast<size_t>(n - i)), 0);
  ETX_UNROLL
  for (int k = 1; k < kVectors; ++k) {
    least[0] = smallest(least[0], least[k]);
    most[0] = largest(most[0], most[k]);
  }
  float t[2][kLanes];
  store(t[0], least[0]);
  store(t[1], most[0]);
  low = high = 0;
  for (int k = 0; k < kLanes; ++k) {
    low = t[0][k] < low ? t[0][k] : low;
    high = t[1][k] > high ? t[1][k] : high;
  }
}

constexpr float kLeastScale = 1.1920928955078125e-7f;  ///< The epsilon of float32.

inline float round_even(float v) {
  const float magic = v < 0 ? -8388608.0f : 8388608.0f;
  const float size = v < 0 ? -v : v;
  return size < 8388608.0f ? (v + magic) - magic : v;
}

#if defined(ETX_INTEGER_NIBBLES)
/// Which of the rows that are multiplied at a time has a tile of its own.
constexpr bool is_single(int64_t row, int64_t rows) { return rows % 2 == 1 && row == rows - 1; }

constexpr bool is_negated(int32_t offset) { return offset < 0; }

/// Makes of numbers u the differences u - z, or z - u where z is negative: from -255 to 127. What
/// bytes do not hold of them, mostly nothing, becomes a second row behind the first.
void subtract_offset(uint8_t* row, int32_t offset, int64_t steps) {
  uint8_t* const rest = row + steps * kNibbleStepBytes;
  const __m128i zero = _mm_set1_epi16(static_cast<int16_t>(offset));
  const __m128i least = _mm_set1_epi16(-128);
  for (int64_t k = 0; k < steps * kNibbleStepBytes; k += 8) {
    const __m128i u = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<__m128i*>(row + k)));
    const __m128i x = is_negated(offset) ? _mm_sub_epi16(zero, u) : _mm_sub_epi16(u, zero);
    const __m128i held = _mm_max_epi16(x, least), more = _mm_sub_epi16(x, held);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row + k), _mm_packs_epi16(held, held));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(rest + k), _mm_packs_epi16(more, more));
  }
}
#endif

void gather_floats(const float* x, int64_t x_stride, int64_t depth, int64_t rows, uint8_t* to,
                   int64_t stride, RowScale* scales, bool int4) {
  const bool stay_bytes = int4 && kNibbleStepBytes != kStepBytes;
  const int offset = int4 ? kNibbleOffset : kOffset;
  const int flip = offset == 0 ? 0 : -128;
  const int64_t unit = int4 ? 2 * kBlockDepth : kBlockDepth;
  const int64_t steps = (depth + unit - 1) / unit * (unit / kBlockDepth);
  for (int64_t row = 0; row < rows; ++row, to += stride, x += x_stride) {
    float low, high;
    extremes(x, depth, low, high);
    float scale = (high - low) / 255.0f;
    scale = scale > kLeastScale ? scale : kLeastScale;
    float zero = -128.0f - round_even(low / scale);
    zero = zero > -128.0f ? (zero < 127.0f ? zero : 127.0f) : -128.0f;
    const Requantize to_bytes(1.0f / scale, {static_cast<int32_t>(zero), -128, 127});
    uint8_t* const bytes = stay_bytes ? to : narrow_place(to, steps);
    int64_t i = 0;
    for (; i + kLanes <= depth; i += kLanes) {
      store_bytes(reinterpret_cast<int8_t*>(bytes + i), to_bytes.from_floats(load(x + i)) ^ flip);
    }
    for (; i < depth; ++i) {
      float t[kLanes] = {x[i]};
      int8_t q[kLanes];
      store_bytes(q, to_bytes.from_floats(load(t)));
      bytes[i] = static_cast<uint8_t>(q[0] ^ flip);
    }
    for (; i < steps * kBlockDepth; ++i) bytes[i] = 0;
    if (!stay_bytes) widen(to, steps);
    if (!stay_bytes && rows == 1) put_in_order(to, steps);
    scales[row] = {scale, static_cast<int32_t>(zero) + offset};
#if defined(ETX_INTEGER_NIBBLES)
    if (int4 && is_single(row, rows)) subtract_offset(to, scales[row].offset, steps);
#endif
  }
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_GATHER_H_
