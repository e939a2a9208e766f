// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_TILE_CHECKS_H_
#define ETX_TESTS_TILE_CHECKS_H_

/// Checks of the loops of Winograd's products, by the matrices that define them (Lavin and Gray,
/// Fast Algorithms for Convolutional Neural Networks, 2016, equations 8 and 9).

#include <algorithm>
#include <cstdint>

#include "check.h"
#include "isa/isa.h"

namespace {

constexpr double kOfPoints[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
constexpr double kOfTaps[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
constexpr double kOfProducts[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

/// Element (i, j) of m x m^T, where x(k, l) is an element of x.
template <int kRows, int kColumns, class X>
double mixed(const double (&m)[kRows][kColumns], int i, int j, const X& x) {
  double sum = 0;
  for (int k = 0; k < kColumns; ++k) {
    for (int l = 0; l < kColumns; ++l) sum += m[i][k] * x(k, l) * m[j][l];
  }
  return sum;
}

void check_tiles_of_points(Check& t) {
  const int64_t lanes = t.isa.vector_floats, width = t.isa.tile_columns, step = 7 * lanes;
  int32_t offset[16];
  for (int i = 0; i < 16; ++i) offset[i] = i * 5 % 16 + i / 7;
  for (int64_t channels = 1; channels < 4; ++channels) {
    for (int64_t vectors = 1; vectors < 3; ++vectors) {
      const int64_t next = channels * width + 3;
      const Floats x = t.draw(channels * step + 20);
      Floats to(static_cast<size_t>(16 * next), 5.0f);
      t.isa.tiles_of_points(x.data(), offset, step, channels, vectors, to.data(), next);
      for (int64_t i = 0; i < 16 * next; ++i) {
        const int64_t f = i / next, c = i % next / width, j = i % next % width;
        const bool is_made = c < channels && j < vectors * lanes;
        const double expected =
            mixed(kOfPoints, static_cast<int>(f / 4), static_cast<int>(f % 4), [&](int k, int l) {
              const int64_t at = std::min(c, channels - 1) * step + offset[4 * k + l] + j;
              return x[static_cast<size_t>(at) % x.size()];
            });
        t.equal(to[static_cast<size_t>(i)], is_made ? expected : 5.0);
      }
    }
  }
}

void check_tiles_of_taps(Check& t) {
  const int64_t lanes = t.isa.vector_floats;
  for (int64_t kernels = 1; kernels < 40; ++kernels) {
    const int64_t next = (kernels + lanes - 1) / lanes * lanes + 2;
    const Floats w = t.draw(9 * kernels);
    Floats to(static_cast<size_t>(16 * next), 5.0f);
    t.isa.tiles_of_taps(w.data(), kernels, to.data(), next);
    for (int64_t i = 0; i < 16 * next; ++i) {
      const int64_t f = i / next, kernel = i % next;
      if (kernel >= kernels && kernel < next - 2) continue;
      const double expected =
          mixed(kOfTaps, static_cast<int>(f / 4), static_cast<int>(f % 4), [&](int k, int l) {
            return w[static_cast<size_t>(9 * std::min(kernel, kernels - 1) + 3 * k + l)];
          });
      t.equal(to[static_cast<size_t>(i)], kernel < kernels ? expected : 5.0);
    }
  }
}

void check_outputs_of_tiles(Check& t) {
  const int64_t lanes = t.isa.vector_floats, width = t.isa.tile_columns, phase = width + 1;
  const int64_t rows = 3, next = rows * width + 2, row_step = 4 * phase + 3;
  for (int64_t vectors = 1; vectors < 3; ++vectors) {
    for (const bool biased : {false, true}) {
      Floats sums = t.draw(16 * next);
      const Floats bias = t.draw(rows);
      Floats y(static_cast<size_t>(rows * row_step), 5.0f);
      const auto run = [&] {
        return t.isa.outputs_of_tiles(sums.data(), next, rows, vectors,
                                      biased ? bias.data() : nullptr, y.data(), row_step, phase);
      };
      t.equal(run(), true);
      for (int64_t i = 0; i < rows * row_step; ++i) {
        const int64_t r = i / row_step, p = i % row_step / phase, j = i % row_step % phase;
        const bool is_made = p < 4 && j < vectors * lanes;
        const double sum = mixed(
            kOfProducts, static_cast<int>(p / 2 % 2), static_cast<int>(p % 2), [&](int k, int l) {
              return sums[static_cast<size_t>((4 * k + l) * next + r * width + j)];
            });
        const double expected = sum + (biased ? bias[static_cast<size_t>(r)] : 0.0);
        t.equal(y[static_cast<size_t>(i)], is_made ? expected : 5.0, 8);
      }
      for (const float bad : {kInfinity, -kInfinity, kNan}) {
        const auto at = static_cast<size_t>(6 * next + 2 * width + vectors * lanes - 1);
        const float kept = sums[at];
        sums[at] = bad;
        t.equal(run(), false);
        sums[at] = kept;
      }
      t.equal(run(), true);
    }
  }
}

}  // namespace

#endif  // ETX_TESTS_TILE_CHECKS_H_
