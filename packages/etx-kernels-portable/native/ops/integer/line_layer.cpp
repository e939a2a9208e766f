// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/line_layer.h"

#include <cstring>

#include "core/scratch.h"
#include "core/work.h"

namespace etx::portable {
namespace {

constexpr int64_t kLinesBytes = 256 * 1024;  ///< Copied at a time, with the panel in a cache.
constexpr int64_t kMostBytes = 1 << 20;      ///< More is gathered.
constexpr int64_t kTileBytes = 64;           ///< Of a row, multiplied at once.
constexpr int64_t kFaster = 16;              ///< Than multiplications of floats.

/// How lines of the input lie in memory: those a stride apart next to each other, so that a row of
/// the product is a step from the one before it, at the end of a line too. Behind the points of a
/// line of the output follow some that are of no use.
struct Lines {
  const Window& w;
  int64_t pitch;       ///< Rows from a line of the output to the next.
  int64_t bytes;       ///< Of a line.
  int64_t count;       ///< Lines of the output at a time.
  int64_t every = 0;   ///< Lines of the input that lie next to each other.
  int64_t before = 0;  ///< Bytes of padding.

  explicit Lines(const Window& window) : w(window) {
    const int64_t points = (w.out[1] - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
    pitch = divide_up(points, w.stride[1]);
    bytes = pitch * w.stride[1] * w.channels;
    const int64_t held = kLinesBytes / bytes - reach();
    count = max<int64_t>(min(held / w.stride[0], w.out[0]), 1);
    every = divide_up((count - 1) * w.stride[0] + reach() + 1, w.stride[0]);
    before = w.before[1] * w.channels;
  }
  int64_t reach() const { return (w.kernel[0] - 1) * w.dilation[0]; }
  int64_t memory() const { return bytes > kMostBytes ? bytes : every * w.stride[0] * bytes; }
  int64_t taps() const { return w.kernel[0] * w.kernel[1]; }
  int64_t place(int64_t line) const {
    return (line % w.stride[0] * every + line / w.stride[0]) * bytes;
  }
  /// Steps of a dilation come back to the same place of a stride after as many as it is long.
  bool is_read(int64_t line) const {
    for (int64_t k = 0; k < min(w.kernel[0], w.stride[0]); ++k) {
      const int64_t from = line - k * w.dilation[0];
      if (from >= 0 && from % w.stride[0] == 0) return true;
    }
    return false;
  }
  void set_taps(int64_t* taps) const {
    for (int64_t k = 0; k < w.kernel[0]; ++k) {
      for (int64_t x = 0; x < w.kernel[1]; ++x) {
        *taps++ = place(k * w.dilation[0]) + x * w.dilation[1] * w.channels;
      }
    }
  }

  /// Copies what lines [oy, oy + lines) of the output read.
  void copy(const int8_t* x, int64_t image, int64_t oy, int64_t lines, uint8_t* to) const {
    const int fill = static_cast<uint8_t>(w.fill) ^ integer().offset;
    const int64_t first = oy * w.stride[0] - w.before[0];
    for (int64_t line = 0; line < (lines - 1) * w.stride[0] + reach() + 1; ++line) {
      if (!is_read(line)) continue;
      uint8_t* const start = to + place(line);
      const int64_t y = first + line;
      int64_t begin = bytes, end = bytes;
      if (y >= 0 && y < w.in[0]) {
        begin = min(before, bytes);
        end = min(begin + w.in[1] * w.channels, bytes);
        copy_points(x + (image * w.in[0] + y) * w.in[1] * w.pixel, end - begin, start + begin);
      }
      memset(start, fill, static_cast<size_t>(begin));
      memset(start + end, fill, static_cast<size_t>(bytes - end));
    }
  }

 private:
  void copy_points(const int8_t* from, int64_t n, uint8_t* to) const {
    if (w.channels == w.pixel) return integer().flip(from, to, n);
    for (; n > 0; n -= w.channels, from += w.pixel, to += w.channels) {
      integer().flip(from, to, w.channels);
    }
  }
};

void run_part(const Layer& layer, const Lines& lines, const Part& units, const Part& columns,
              uint8_t* memory, const int64_t* taps) {
  const Window& w = lines.w;
  for (int64_t unit = units.begin; unit < units.end;) {
    const int64_t image = unit / w.out[0], oy = unit % w.out[0];
    const int64_t count = min(min(lines.count, w.out[0] - oy), units.end - unit);
    for (int64_t g = 0; g < layer.groups; ++g) {
      lines.copy(layer.rows.x + g * w.channels, image, oy, count, memory);
      Product p = layer.product;
      p.rows = memory;
      p.row_stride = w.stride[1] * w.channels;
      p.num_rows = (count - 1) * lines.pitch + w.out[1];
      p.taps = taps;
      p.num_taps = lines.taps();
      p.line = w.out[1];
      p.pitch = lines.pitch;
      p.begin = columns.begin;
      p.end = columns.end;
      p.weight += g * layer.weight_step;
      p.start += g * layer.operand_step;
      p.scale += g * layer.operand_step;
      p.out += unit * w.out[1] * p.out_stride + g * p.columns;
      layer.multiply(p);
    }
    unit += count;
  }
}

}  // namespace

bool reads_lines(const Layer& layer) {
  const Window* const w = layer.rows.window;
  if (w == nullptr || layer.product.out == nullptr) return false;
  const int64_t squares = divide_up(w->channels, kTileBytes) * kTileBytes;
  return w->channels % kBlockDepth == 0 && 2 * w->channels >= squares &&
         w->channels <= kMostBytes && w->spacing[0] * w->spacing[1] == 1 &&
         w->kernel[0] * w->kernel[1] > 1 && w->out[0] * w->out[1] > 1 &&
         Lines(*w).memory() <= kMostBytes;
}

Error run_lines(Context& context, const Layer& layer) {
  const Lines lines(*layer.rows.window);
  const Integer& level = integer();
  const int64_t units = layer.num_rows / lines.w.out[1];
  const Checked work =
      Checked(layer.num_rows) * layer.product.columns * (layer.rows.depth / kFaster) * layer.groups;
  const int64_t threads = useful_threads(context, work);
  const bool by_lines = units >= 16 * threads || layer.product.end < level.panel_blocks * threads;
  const int64_t each = divide_up(lines.memory(), 64) * 64;
  const int64_t bytes = lines.taps() * static_cast<int64_t>(sizeof(int64_t));
  const int64_t start = divide_up(bytes, 64) * 64;
  ETX_ASSIGN(uint8_t* const memory, scratch<uint8_t>(context, start + threads * each,
                                                     "no temporary memory to copy lines to"));
  int64_t* const taps = reinterpret_cast<int64_t*>(memory);
  lines.set_taps(taps);
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Part own(units, 1, by_lines ? i : 0, by_lines ? threads : 1);
      const Part columns(layer.product.end, level.panel_blocks, by_lines ? 0 : i,
                         by_lines ? 1 : threads);
      run_part(layer, lines, own, columns, memory + start + i * each, taps);
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
