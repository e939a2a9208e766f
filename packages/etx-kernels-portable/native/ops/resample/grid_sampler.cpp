// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/shape.h"
#include "ops/resample/rounded.h"

namespace etx::portable {
namespace {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct Sampling {
  int64_t interpolation, padding;
  bool align_corners;
  ScalarType type;
  int64_t images, channels, height, width, points;  ///< `points` of each image.
};

template <typename T>
using Computing = std::conditional_t<std::is_same_v<Compute<T>, T>, T, Rounded>;

constexpr int64_t kPoints = 16;

/// What some points read of a plane, the same for each channel. A pixel outside of it is -1.
template <typename T>
struct Taps {
  int64_t at[16][kPoints];
  T weight[8][kPoints];  ///< Bilinear: of each pixel. Bicubic: of four columns, then of four rows.
};

/// The operations and their order are those of ATen, whose every step rounds float16 and bfloat16:
/// there `T` is Rounded.
template <typename T>
struct Axis {
  using Value = Stored<T>;

  Axis(int64_t size, const Sampling& s) : padding(s.padding), type(s.type) {
    const double n = static_cast<double>(size), span = s.align_corners ? n - 1 : n;
    const double border = s.align_corners ? 0 : 0.5;
    half = number(span / 2);
    twice = number(2 * span);
    before = number(border);
    low = number(-border);
    last = number(n - 1);
    count = static_cast<Value>(n);
  }

  T number(double x) const {
    const Value value = static_cast<Value>(x);
    if constexpr (std::is_same_v<T, Rounded>) {
      return {Rounded::round(value, type), type};
    } else {
      return value;
    }
  }

  /// A grid coordinate, -1 to 1 over the image, in pixels.
  T to_pixels(Value x) const { return (exact(half, x) + exact(half, 1)) * half - before; }

  /// NaN becomes 0.
  T clip(T x) const {
    const T zero = exact(x, 0), above = zero < x ? x : zero;
    return min(above, last);
  }

  /// Folds `x` back at the borders until it lies between them.
  T reflect(T x) const {
    if (stored(twice) == 0) return twice;
    const T from_low = exact(x, std::fabs(stored(x - low)));
    const T extra = from_low - exact(x, std::trunc(stored(from_low / twice))) * twice;
    const T back = twice - extra;
    return min(back, extra) + low;
  }

  T keep_inside(T x) const {
    if (padding == kBorder) return clip(x);
    return padding == kReflection ? clip(reflect(x)) : x;
  }

  /// -1 outside of the image, and for coordinates that no image could have.
  int64_t index(T at) const {
    const Value x = stored(at);
    return x >= 0 && x < count ? static_cast<int64_t>(x) : -1;
  }

  int64_t padding;
  ScalarType type;
  T half, twice, before, low, last;
  Value count;
};

template <typename T>
struct Sampler {
  using Value = Stored<T>;

  explicit Sampler(const Sampling& s)
      : interpolation(s.interpolation), width(s.width), rows(s.height, s), columns(s.width, s) {}

  int64_t interpolation, width;
  Axis<T> rows, columns;

  static T floor(T x) { return exact(x, std::floor(stored(x))); }

  int64_t pixel(int64_t y, int64_t x) const { return y < 0 || x < 0 ? -1 : y * width + x; }

  static T inner(T d) { return (exact(d, 1.25) * d - exact(d, 2.25)) * d * d + exact(d, 1); }
  static T outer(T d) {
    return ((exact(d, -0.75) * d + exact(d, 3.75)) * d - exact(d, 6)) * d + exact(d, 3);
  }

  /// Weights of the four neighbours of a point `t` behind the second: cubic convolution, A = -3/4.
  static void cubic_weights(T t, T (&w)[4]) {
    const T one = exact(t, 1);
    w[0] = outer(t + one);
    w[1] = inner(t);
    w[2] = inner(one - t);
    w[3] = outer(exact(t, 2) - t);
  }

  /// Writes what point `j` of a block reads.
  void place(Value grid_y, Value grid_x, int64_t j, Taps<T>& taps) const {
    T y = rows.to_pixels(grid_y), x = columns.to_pixels(grid_x);
    int64_t at_y[4], at_x[4];
    if (interpolation == kBicubic) {
      const T top = floor(y), left = floor(x);
      T of_rows[4], of_columns[4];
      cubic_weights(y - top, of_rows);
      cubic_weights(x - left, of_columns);
      for (int k = 0; k < 4; ++k) {
        taps.weight[k][j] = of_columns[k];
        taps.weight[4 + k][j] = of_rows[k];
        at_y[k] = rows.index(rows.keep_inside(top + exact(y, k - 1)));
        at_x[k] = columns.index(columns.keep_inside(left + exact(x, k - 1)));
      }
      for (int k = 0; k < 16; ++k) taps.at[k][j] = pixel(at_y[k / 4], at_x[k % 4]);
      return;
    }
    y = rows.keep_inside(y);
    x = columns.keep_inside(x);
    if (interpolation == kNearest) {
      taps.at[0][j] = pixel(rows.index(exact(y, std::nearbyint(stored(y)))),
                            columns.index(exact(x, std::nearbyint(stored(x)))));
      return;
    }
    const T top = floor(y), left = floor(x), one = exact(y, 1);
    const T n = y - top, s = one - n, w = x - left, e = one - w;
    const T weights[] = {e * s, w * s, e * n, w * n};
    at_y[0] = rows.index(top);
    at_y[1] = rows.index(top + one);
    at_x[0] = columns.index(left);
    at_x[1] = columns.index(left + one);
    for (int k = 0; k < 4; ++k) {
      taps.at[k][j] = pixel(at_y[k / 2], at_x[k % 2]);
      taps.weight[k][j] = weights[k];
    }
  }

  /// sum = a product of each tap's pixel and its weight, added in their order.
  static void blend(const Value* plane, const int64_t (*at)[kPoints], const T (*weight)[kPoints],
                    T (&sum)[kPoints]) {
    for (int k = 0; k < 4; ++k) {
      Value pixels[kPoints];
      read(plane, at[k], pixels);
      for (int64_t j = 0; j < kPoints; ++j) {
        const T product = weight[k][j] * exact(weight[k][j], pixels[j]);
        sum[j] = k == 0 ? product : sum[j] + product;
      }
    }
  }

  static void read(const Value* plane, const int64_t (&at)[kPoints], Value (&pixels)[kPoints]) {
    for (int64_t j = 0; j < kPoints; ++j) pixels[j] = at[j] < 0 ? 0 : plane[at[j]];
  }

  /// The values of a block of points in one channel.
  void sample(const Value* plane, const Taps<T>& taps, Value (&values)[kPoints]) const {
    if (interpolation == kNearest) return read(plane, taps.at[0], values);
    T sum[kPoints], line[kPoints];
    if (interpolation == kBilinear) {
      blend(plane, taps.at, taps.weight, sum);
    } else {
      for (int i = 0; i < 4; ++i) {
        blend(plane, taps.at + 4 * i, taps.weight, line);
        for (int64_t j = 0; j < kPoints; ++j) {
          const T product = taps.weight[4 + i][j] * line[j];
          sum[j] = i == 0 ? product : sum[j] + product;
        }
      }
    }
    for (int64_t j = 0; j < kPoints; ++j) values[j] = stored(sum[j]);
  }
};

/// Samples all planes; `grid` has pairs, x first.
template <typename T>
void sample_all(Context& context, const Sampling& s, const Stored<T>* x, const Stored<T>* grid,
                Stored<T>* y) {
  const Sampler<T> sampler(s);
  const int64_t blocks = (s.points + kPoints - 1) / kPoints, grain = 1 + 256 / (s.channels + 1);
  context.parallel_for(0, s.images * blocks, grain, [&](int64_t begin, int64_t end) {
    Taps<T> taps;
    Stored<T> values[kPoints];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / blocks, first = i % blocks * kPoints;
      const int64_t count = std::min(kPoints, s.points - first);
      const Stored<T>* const pairs = grid + 2 * (image * s.points + first);
      for (int64_t j = 0; j < kPoints; ++j) {  // The last point stands for those that are missing.
        const Stored<T>* const pair = pairs + 2 * std::min(j, count - 1);
        sampler.place(pair[1], pair[0], j, taps);
      }
      for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c) {
        sampler.sample(x + c * s.height * s.width, taps, values);
        std::copy_n(values, count, y + c * s.points + first);
      }
    }
  });
}

Error grid_sampler_2d_out(Context& context, const Tensor& input, const Tensor& grid,
                          int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                          Tensor& out) {
  ETX_CHECK(context, input.dim() == 4 && grid.dim() == 4, InvalidArgument,
            "input must be (N, C, H, W) and grid (N, H, W, 2)");
  ETX_CHECK(context, grid.size(0) == input.size(0) && grid.size(3) == 2, InvalidArgument,
            "grid must have the batch of input and two coordinates");
  ETX_CHECK(context, input.size(2) > 0 && input.size(3) > 0, InvalidArgument,
            "the spatial dimensions of input must not be empty");
  ETX_CHECK(
      context,
      interpolation_mode >= 0 && interpolation_mode <= 2 && padding_mode >= 0 && padding_mode <= 2,
      InvalidArgument, "interpolation_mode and padding_mode must be 0, 1 or 2");
  ETX_CHECK(context,
            input.scalar_type() == out.scalar_type() && grid.scalar_type() == out.scalar_type(),
            InvalidArgument, "input, grid and out must have the same dtype");
  ETX_CHECK(context, Floating::contains(out.scalar_type()), NotSupported,
            "grid_sampler_2d takes floating dtypes");
  const Sampling s{interpolation_mode, padding_mode,  align_corners,
                   out.scalar_type(),  input.size(0), input.size(1),
                   input.size(2),      input.size(3), grid.size(1) * grid.size(2)};
  Shape shape;
  for (const int64_t size : {input.size(0), input.size(1), grid.size(1), grid.size(2)}) {
    shape.push(size);
  }
  ETX_TRY(resize_out(context, out, shape));
  const ScalarType type = wide(out.scalar_type());
  const void *x = nullptr, *pairs = nullptr;
  ResultOperand result;
  ETX_TRY(read_operand(context, input, type, x));
  ETX_TRY(read_operand(context, grid, type, pairs));
  ETX_TRY(result.prepare(context, out, type));
  ETX_TRY(dispatch(Floating{}, out.scalar_type(), [&](auto tag) {
    using T = Computing<typename decltype(tag)::type>;
    using Value = Stored<T>;
    sample_all<T>(context, s, static_cast<const Value*>(x), static_cast<const Value*>(pairs),
                  result.data<Value>());
    return Error::Ok;
  }));
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::grid_sampler_2d.out", grid_sampler_2d_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(grid_sampler_kernels, kRows);

}  // namespace etx::portable
