// SPDX-License-Identifier: BSD-3-Clause
/// Each row of isa.def at each level that this processor runs, against plain loops in double: a row
/// without a check here does not compile. Products of pairs of bfloat16, too. Prints the levels;
/// exits with 1 at the first difference.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include <etx/dtype.h>

#include "check.h"
#include "double_checks.h"
#include "isa/amx.h"
#include "isa/isa.h"
#include "line_checks.h"
#include "pair_checks.h"
#include "product_checks.h"
#include "tile_checks.h"
#include "whole_vector_checks.h"

namespace etx::portable {
extern const Isa isa_base;
#if defined(ETX_ISA_X86_LEVELS)
extern const Isa isa_v3;
extern const Isa isa_v4;
#endif
#if defined(ETX_ISA_X86_PAIRS)
extern const Pairs pairs_v4;
extern const Pairs pairs_amx;
#endif
}  // namespace etx::portable

namespace {

using etx::portable::Depthwise;
using etx::portable::Gemm;
using etx::portable::Gemv;

void check_add_scaled(Check& t) {
  for (const size_t n : kSizes) {
    const Floats a = t.draw(n), b = t.draw(n);
    Floats y(n);
    t.isa.add_scaled(a.data(), b.data(), 0.75f, y.data(), n);
    for (size_t i = 0; i < n; ++i) t.equal(y[i], a[i] + b[i] * 0.75);
  }
}

void check_clamp(Check& t) {
  for (const size_t n : kSizes) {
    Floats x = t.draw(n), y(n);
    if (n > 2) x[n / 2] = kNan;
    t.isa.clamp(x.data(), -1.5f, 2.0f, y.data(), n);
    for (size_t i = 0; i < n; ++i) {
      t.equal(y[i], x[i] < -1.5f ? -1.5 : x[i] > 2.0f ? 2.0 : static_cast<double>(x[i]));
    }
  }
}

void check_affine(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = t.draw(n);
    Floats y(n);
    t.isa.affine(x.data(), 1.5f, -0.25f, y.data(), n);
    for (size_t i = 0; i < n; ++i) t.equal(y[i], x[i] * 1.5 - 0.25);
  }
}

void check_sum(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = t.draw(n);
    double sum = 0;
    for (const float v : x) sum += v;
    t.equal(t.isa.sum(x.data(), n), sum, static_cast<double>(n));
  }
}

void check_sum_squares(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = t.draw(n);
    double sum = 0;
    for (const float v : x) sum += (v - 0.5) * (v - 0.5);
    t.equal(t.isa.sum_squares(x.data(), 0.5f, n), sum);
  }
}

void check_extreme(Check& t, float (*loop)(const float*, size_t), float sign) {
  for (const size_t n : kSizes) {
    Floats x = t.draw(n);
    float best = -kInfinity;
    for (const float v : x) best = sign * v > best ? sign * v : best;
    t.equal(loop(x.data(), n), sign * best);
    for (size_t i = 0; i < n; ++i) {
      const float kept = x[i];
      x[i] = kNan;
      t.equal(loop(x.data(), n), kNan);
      x[i] = kept;
    }
  }
}
void check_max(Check& t) { check_extreme(t, t.isa.max, 1); }
void check_min(Check& t) { check_extreme(t, t.isa.min, -1); }

double log_sum_exp(const Floats& x) {
  double sum = 0;
  for (const float v : x) sum += std::exp(static_cast<double>(v));
  return std::log(sum);
}

void check_softmax_row(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = t.draw(n);
    Floats y(n);
    if (n > 0) t.isa.softmax_row(x.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) t.equal(y[i], std::exp(x[i] - log_sum_exp(x)));
  }
}

void check_log_softmax_rows(Check& t) {
  for (const size_t n : kSizes) {
    for (const size_t rows : {1u, 16u, 19u}) {
      const Floats x = t.draw(n * rows);
      Floats y(n * rows);
      if (n > 0) t.isa.log_softmax_rows(x.data(), y.data(), n, rows);
      for (size_t i = 0; i < n * rows; ++i) {
        const float* const row = x.data() + i / n * n;
        t.equal(y[i], x[i] - log_sum_exp(Floats(row, row + n)));
      }
    }
  }
}

void check_scale_row(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = t.draw(n), weight = t.draw(n), bias = t.draw(n);
    for (int given = 0; given < 4; ++given) {
      const float* const w = (given & 1) != 0 ? weight.data() : nullptr;
      const float* const b = (given & 2) != 0 ? bias.data() : nullptr;
      Floats y(n);
      t.isa.scale_row(x.data(), 0.5f, 1.25f, w, b, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const double scaled = (x[i] - 0.5) * 1.25 * ((given & 1) != 0 ? weight[i] : 1.0);
        t.equal(y[i], scaled + ((given & 2) != 0 ? bias[i] : 0.0), 8);
      }
    }
  }
}

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

void check_pack_transposed(Check& t) {
  const int64_t width = t.isa.tile_columns, depth = 7;
  for (int64_t rows = 1; rows < 3 * width; rows += 5) {
    const Floats x = t.draw(rows * 9);
    Floats panels(static_cast<size_t>(round_up(rows, width) * depth), kNan);
    t.isa.pack_transposed(x.data(), 9, rows, depth, panels.data());
    for (int64_t j = 0; j < round_up(rows, width); ++j) {
      for (int64_t k = 0; k < depth; ++k) {
        const auto at = static_cast<size_t>((j / width * depth + k) * width + j % width);
        t.equal(panels[at], j < rows ? x[static_cast<size_t>(j * 9 + k)] : 0.0);
      }
    }
  }
}

void same_bits(const Check& t, uint32_t actual, uint32_t expected, uint32_t of) {
  if (actual == expected) return;
  std::printf("%s, %s of %x: %x, not %x\n", t.isa.name, t.member, of, actual, expected);
  std::exit(1);
}

uint32_t bits_of(float x) { return etx::detail::bit_cast<uint32_t>(x); }

template <typename T>
void check_widening(Check& t, void (*loop)(const uint16_t*, float*, size_t)) {
  std::vector<uint16_t> x(65536 + 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  Floats y(x.size());
  loop(x.data(), y.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    T one;
    one.bits = x[i];
    same_bits(t, bits_of(y[i]), bits_of(one), x[i]);
  }
}
void check_from_half(Check& t) { check_widening<etx::Half>(t, t.isa.from_half); }
void check_from_bfloat16(Check& t) { check_widening<etx::BFloat16>(t, t.isa.from_bfloat16); }

template <typename T>
void check_narrowing(Check& t, void (*loop)(const float*, uint16_t*, size_t)) {
  Floats x(1021);
  std::vector<uint16_t> y(x.size());
  for (uint64_t pattern = 0; pattern < uint64_t{1} << 32;) {
    for (float& v : x) {
      v = etx::detail::bit_cast<float>(static_cast<uint32_t>(pattern));
      pattern += 4093;
    }
    loop(x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) same_bits(t, y[i], T(x[i]).bits, bits_of(x[i]));
  }
}
void check_to_half(Check& t) { check_narrowing<etx::Half>(t, t.isa.to_half); }
void check_to_bfloat16(Check& t) { check_narrowing<etx::BFloat16>(t, t.isa.to_bfloat16); }

/// Of uint8 and int8, with halves between numbers, numbers outside and NaN.
void check_quantize_bytes(Check& t) {
  for (const size_t n : kSizes) {
    for (const int32_t low : {0, -128}) {
      const int32_t zero = low + 100, high = low + 250;
      Floats x(n);
      for (float& v : x) v = std::round(100 * t.draw()) / 8;
      if (n > 2) x[0] = kNan, x[1] = kInfinity, x[2] = -kInfinity;
      std::vector<int8_t> q(n + 1, 77);
      t.isa.quantize_bytes(x.data(), 4.0f, static_cast<float>(low - zero),
                           static_cast<float>(high - zero), zero, q.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const double number = std::isnan(x[i]) ? low : std::nearbyint(x[i] * 4.0) + zero;
        const double inside = std::fmin(std::fmax(number, low), high);
        t.equal(q[i], static_cast<int8_t>(static_cast<int32_t>(inside)), 0);
      }
      t.equal(q[n], 77, 0);
    }
  }
}

void check_dequantize_bytes(Check& t) {
  for (const size_t n : kSizes) {
    std::vector<int8_t> q(n);
    for (int8_t& v : q) v = static_cast<int8_t>(std::lrint(1000 * t.draw()));
    for (const int32_t mask : {-1, 255}) {
      Floats y(n + 1, 77.0f);
      t.isa.dequantize_bytes(q.data(), mask, 3.0f, 0.1f, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const int32_t number = q[i] & mask;
        const float expected = (static_cast<float>(number) - 3.0f) * 0.1f;
        same_bits(t, bits_of(y[i]), bits_of(expected), static_cast<uint32_t>(number));
      }
      t.equal(y[n], 77);
    }
  }
}

void check_exp_sum_double(Check& t) {
  for (const size_t n : kSizes) {
    std::vector<double> x, y(n);
    double total = 0;
    for (size_t i = 0; i < n; ++i) x.push_back(t.draw()), total += std::exp(x[i] - 4);
    t.equal(t.isa.exp_sum_double(x.data(), 4, y.data(), n), total);
    for (size_t i = 0; i < n; ++i) t.equal(y[i], std::exp(x[i] - 4));
  }
}

void check_pack_rows(Check& t) {
  const int64_t width = t.isa.tile_columns, depth = 7;
  for (int64_t columns = 1; columns < 3 * width; columns += 5) {
    const Floats b = t.draw(depth * (columns + 2));
    Floats panels(static_cast<size_t>(round_up(columns, width) * depth), kNan);
    t.isa.pack_rows(b.data(), columns + 2, columns, depth, panels.data());
    for (int64_t j = 0; j < round_up(columns, width); ++j) {
      for (int64_t k = 0; k < depth; ++k) {
        const auto at = static_cast<size_t>((j / width * depth + k) * width + j % width);
        t.equal(panels[at], j < columns ? b[static_cast<size_t>(k * (columns + 2) + j)] : 0.0);
      }
    }
  }
}

/// Runs of 1 to `longest` floats, in any order of their places.
void check_pack_runs(Check& t) {
  const int64_t width = t.isa.tile_columns, depth = 5, plane = 3 * width;
  const Floats b = t.draw(depth * plane + 2 * width);
  const std::vector<int32_t> index = {0, static_cast<int32_t>(2 * plane), 1, 7,
                                      static_cast<int32_t>(4 * plane)};
  for (int64_t longest = 1; longest <= width; ++longest) {
    for (int64_t columns = 1; columns <= width; columns += 3) {
      std::vector<etx::portable::PanelRun> runs;
      std::vector<int64_t> at;
      for (int64_t left = columns; left > 0; left -= runs.back().length) {
        const auto count = static_cast<int64_t>(runs.size());
        const auto from = static_cast<int32_t>((5 + 37 * count) % (2 * width));
        runs.push_back(
            {from, static_cast<int32_t>(std::min(left, 1 + (longest + count) % longest))});
        for (int32_t i = 0; i < runs.back().length; ++i) at.push_back(from + i);
      }
      Floats panel(static_cast<size_t>(width * depth), kNan);
      t.isa.pack_runs(b.data(), index.data(), depth, runs.data(), static_cast<int64_t>(runs.size()),
                      panel.data());
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < columns; ++j) {
          const auto from =
              static_cast<size_t>(index[static_cast<size_t>(k)] + at[static_cast<size_t>(j)]);
          t.equal(panel[static_cast<size_t>(k * width + j)], b[from]);
        }
      }
    }
  }
}

void check_gemm(Check& t) {
  const int64_t width = t.isa.tile_columns;
  for (int64_t rows = 1; rows < 2 * t.isa.tile_rows + 2; ++rows) {
    for (int64_t columns = 1; columns <= 2 * width + 1; columns += width / 2) {
      const int64_t depth = 1 + rows * 3;
      const Floats a = t.draw(rows * depth), b = t.draw(depth * columns), bias = t.draw(rows);
      Floats panels(static_cast<size_t>(round_up(columns, width) * depth));
      Floats scratch(static_cast<size_t>(t.isa.tile_rows * etx::portable::scratch_stride(depth)));
      Floats c(static_cast<size_t>(rows * columns), kNan);
      t.isa.pack_rows(b.data(), columns, columns, depth, panels.data());
      Gemm g;
      g.a = a.data(), g.a_stride = depth;
      g.b = panels.data(), g.b_stride = width, g.panel_stride = width * depth;
      g.bias = bias.data();
      g.c = c.data(), g.depth = depth;
      g.row_end = rows, g.column_end = columns, g.column_block = width;
      g.scratch = scratch.data();
      for (const auto store : {Gemm::Store::Rows, Gemm::Store::Transposed}) {
        g.store = store;
        const bool by_rows = store == Gemm::Store::Rows;
        g.c_stride = by_rows ? columns : rows;
        t.isa.gemm(g);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            double sum = bias[static_cast<size_t>(i)];
            for (int64_t k = 0; k < depth; ++k) {
              sum += static_cast<double>(a[static_cast<size_t>(i * depth + k)]) *
                     b[static_cast<size_t>(k * columns + j)];
            }
            const int64_t at = by_rows ? i * columns + j : j * rows + i;
            t.equal(c[static_cast<size_t>(at)], sum, static_cast<double>(16 * depth));
          }
        }
      }
    }
  }
}

void check_gemv(Check& t) {
  for (int64_t rows = 1; rows < 6; ++rows) {
    for (const size_t size : kSizes) {
      const auto depth = static_cast<int64_t>(size);
      const int64_t columns = 9;
      const Floats x = t.draw(rows * depth), w = t.draw(columns * depth), bias = t.draw(columns);
      Floats y(static_cast<size_t>(rows * columns), kNan);
      Gemv d;
      d.x = x.data(), d.x_stride = depth, d.rows = rows;
      d.w = w.data(), d.w_stride = depth, d.depth = depth;
      d.begin = 0, d.end = columns;
      d.bias = bias.data();
      d.y = y.data(), d.y_stride = columns;
      t.isa.gemv(d);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double sum = bias[static_cast<size_t>(j)];
          for (int64_t k = 0; k < depth; ++k) {
            sum += static_cast<double>(x[static_cast<size_t>(i * depth + k)]) *
                   w[static_cast<size_t>(j * depth + k)];
          }
          t.equal(y[static_cast<size_t>(i * columns + j)], sum, 16.0 * static_cast<double>(depth));
        }
      }
    }
  }
}

/// A convolution whose strips serve `lines` lines of outputs.
void check_plane(Check& t, int64_t height, int64_t width, int64_t kernel, int64_t stride,
                 int64_t dilation, int64_t padding, int64_t lines) {
  const int64_t reach = (kernel - 1) * dilation;
  Depthwise d{};
  d.in[0] = height, d.in[1] = width;
  for (int a = 0; a < 2; ++a) {
    d.kernel[a] = kernel, d.stride[a] = stride, d.dilation[a] = dilation, d.padding[a] = padding;
    d.out[a] = (d.in[a] + 2 * padding - reach - 1) / stride + 1;
  }
  if (height + 2 * padding <= reach || width + 2 * padding <= reach) return;
  d.taps = kernel * kernel;
  d.phases = std::min(stride, reach + 1);
  d.phase = d.out[1] + reach / stride;
  d.line = stride * d.phases * d.phase;
  d.lines = std::min(lines, d.out[0]);
  std::vector<int32_t> offsets;
  for (int64_t k = 0; k < d.taps; ++k) {
    const int64_t y = k / kernel * dilation, x = k % kernel * dilation;
    offsets.push_back(static_cast<int32_t>((y * d.phases + x % stride) * d.phase + x / stride));
  }
  d.offsets = offsets.data();
  const int64_t strip = ((d.lines - 1) * stride + reach + 1) * d.phases * d.phase;
  Floats memory(static_cast<size_t>(strip + 2 * t.isa.vector_floats));
  d.strip = memory.data();
  const Floats x = t.draw(static_cast<size_t>(height * width));
  const Floats w = t.draw(static_cast<size_t>(d.taps));
  Floats y(static_cast<size_t>(d.out[0] * d.out[1]));
  t.isa.depthwise(d, x.data(), w.data(), 0.5f, y.data());
  for (int64_t i = 0; i < d.out[0] * d.out[1]; ++i) {
    double sum = 0.5;
    for (int64_t k = 0; k < d.taps; ++k) {
      const int64_t row = i / d.out[1] * stride + k / kernel * dilation - padding;
      const int64_t column = i % d.out[1] * stride + k % kernel * dilation - padding;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      sum += static_cast<double>(w[static_cast<size_t>(k)]) *
             x[static_cast<size_t>(row * width + column)];
    }
    t.equal(y[static_cast<size_t>(i)], sum, 80);
  }
}

void check_depthwise(Check& t) {
  for (int64_t width = 1; width < 40; ++width) {
    for (int64_t kernel = 1; kernel < 6; ++kernel) {
      for (int64_t stride = 1; stride < 4; ++stride) {
        check_plane(t, 9, width, kernel, stride, 1, kernel / 2, 9);
        check_plane(t, 12, width, kernel, stride, 1, 0, 2);
        check_plane(t, 17, width, kernel, stride, 2, kernel, 3);
      }
    }
  }
}

/// A line of outputs of channels side by side, of which the last lines of taps are left out.
void check_channels(Check& t, int64_t width, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t lanes = t.isa.vector_floats, lines = kernel - kernel / 2;
  Depthwise d{};
  d.kernel[0] = d.kernel[1] = kernel, d.stride[0] = d.stride[1] = stride;
  d.dilation[0] = d.dilation[1] = dilation, d.out[1] = width;
  d.phase = (round_up(width, 4) - 1) * stride + (kernel - 1) * dilation + 1;
  const Floats x = t.draw(((lines - 1) * dilation + 1) * d.phase * lanes);
  const Floats w = t.draw(lines * kernel * lanes), bias = t.draw(lanes);
  Floats y(static_cast<size_t>(round_up(width, 4) * lanes));
  t.isa.depthwise_line(d, x.data(), w.data(), lines, bias.data(), y.data());
  for (int64_t i = 0; i < width * lanes; ++i) {
    double sum = bias[static_cast<size_t>(i % lanes)];
    for (int64_t k = 0; k < lines * kernel; ++k) {
      const int64_t line = k / kernel * dilation;
      const int64_t at = line * d.phase + i / lanes * stride + k % kernel * dilation;
      sum += static_cast<double>(w[static_cast<size_t>(k * lanes + i % lanes)]) *
             x[static_cast<size_t>(at * lanes + i % lanes)];
    }
    t.equal(y[static_cast<size_t>(i)], sum, 80);
  }
}

void check_depthwise_line(Check& t) {
  for (int64_t width = 1; width < 22; ++width) {
    for (int64_t kernel = 1; kernel < 10; kernel += 2) {
      check_channels(t, width, kernel, 1 + width % 3, 1 + width % 2);
    }
  }
}

const std::vector<int32_t> kOffsets = {0, 1, 5, 9, 30};
const std::vector<int32_t> kMoves = {7, 0, 3, 2, 11};

void check_window(Check& t, size_t n, bool chained) {
  const size_t room = static_cast<size_t>(t.isa.vector_floats - 1);
  Floats x = t.draw(n + 30 + room), y(n + room);
  x[n / 2 + 5] = kNan;
  std::vector<int32_t> at(n + room), from(n + 30 + room);
  for (size_t i = 0; i < from.size(); ++i) from[i] = chained ? static_cast<int32_t>(100 * i) : 0;
  t.isa.max_window(x.data(), chained ? from.data() : nullptr, kOffsets.data(), kMoves.data(), 5,
                   y.data(), at.data(), static_cast<int64_t>(n));
  for (size_t q = 0; q < n; ++q) {
    size_t first = 0;
    for (size_t k = 1; k < 5; ++k) {
      const float best = x[q + static_cast<size_t>(kOffsets[first])];
      const float v = x[q + static_cast<size_t>(kOffsets[k])];
      if (v > best || std::isnan(v)) first = k;
    }
    const size_t point = q + static_cast<size_t>(kOffsets[first]);
    t.equal(at[q], from[point] + kMoves[first]);
    t.equal(y[q], x[point]);
  }
}

void check_max_window(Check& t) {
  for (const size_t n : kSizes) check_window(t, n, false), check_window(t, n, true);
}

void check_store_window(Check& t) {
  for (const size_t n : kSizes) {
    Floats best = t.draw(n), y(n);
    std::vector<int32_t> at(n);
    for (size_t i = 0; i < n; ++i) at[i] = static_cast<int32_t>(i * i % 97);
    std::vector<int64_t> index(n);
    const auto store = [&] {
      return t.isa.store_window(best.data(), at.data(), -5, 3, y.data(), index.data(), n);
    };
    t.equal(store(), false);
    if (n > 0) best[n - 1] = -std::numeric_limits<float>::infinity();
    t.equal(store(), n > 0);
    for (size_t i = 0; i < n; ++i) {
      t.equal(y[i], best[i]);
      t.equal(static_cast<double>(index[i]), at[i] - 5.0 + 3.0 * static_cast<double>(i));
    }
  }
}

void check_pad_lines(Check& t) {
  for (int64_t step = 1; step < 4; ++step) {
    for (int64_t count = 1; count < 40; ++count) {
      const int64_t stride = (count - 1) * step + 1, length = count + 5;
      const Floats x = t.draw(3 * stride);
      Floats y(static_cast<size_t>(3 * length), kNan);
      t.isa.pad_lines(x.data(), stride, 3, 2, count, step, -7.0f, y.data(), length);
      for (int64_t i = 0; i < 3 * length; ++i) {
        const int64_t k = i % length - 2;
        const bool inside = k >= 0 && k < count;
        const int64_t at = i / length * stride + k * step;
        t.equal(y[static_cast<size_t>(i)], inside ? x[static_cast<size_t>(at)] : -7.0);
      }
    }
  }
}

void check_join_line(Check& t) {
  for (int64_t phases = 1; phases < 5; ++phases) {
    for (int64_t n = 0; n < 120; ++n) {
      const int64_t stride = n / phases + 3;
      const Floats x = t.draw(phases * stride + t.isa.vector_floats);
      Floats y(static_cast<size_t>(n), kNan);
      t.isa.join_line(x.data(), stride, phases, n, y.data());
      for (int64_t i = 0; i < n; ++i) {
        const int64_t from = i % phases * stride + i / phases;
        t.equal(y[static_cast<size_t>(i)], x[static_cast<size_t>(from)]);
      }
    }
  }
}

/// Each row by itself, as a function of double.
namespace expected {
#define ETX_UNARY(member, function, value) \
  double member(double x) { return value; }
#define ETX_BINARY(member, function, value) \
  double member(double a, double b) { return value; }
#define ETX_SCALAR(member, function, value) \
  double member(double a, double b) { return value; }
#define ETX_LOOP(result, member, parameters)
#include "isa/isa.def"
}  // namespace expected
void check(const Isa& isa) {
#define ETX_UNARY(member, function, value) Check{isa, #member}.unary(isa.member, expected::member);
#define ETX_BINARY(member, function, value) \
  Check{isa, #member}.binary(isa.member, expected::member);
#define ETX_SCALAR(member, function, value) \
  Check{isa, #member}.scalar(isa.member, expected::member);
#define ETX_LOOP(result, member, parameters) \
  {                                          \
    Check t{isa, #member};                   \
    check_##member(t);                       \
  }
#include "isa/isa.def"
  std::printf("%s\n", isa.name);
}

}  // namespace

int main() {
  check(etx::portable::isa_base);
#if defined(ETX_ISA_X86_LEVELS)
  const char* const best = etx::portable::isa().name;
  if (std::strcmp(best, "base") != 0) check(etx::portable::isa_v3);
  if (std::strcmp(best, "v4") == 0) check(etx::portable::isa_v4);
#endif
#if defined(ETX_ISA_X86_PAIRS)
  if (std::strcmp(best, "v4") == 0 && __builtin_cpu_supports("avx512bf16")) {
    check_pairs("pairs", etx::portable::pairs_v4);
    if (etx::portable::has_amx()) check_pairs("amx", etx::portable::pairs_amx);
  }
#endif
  return 0;
}
