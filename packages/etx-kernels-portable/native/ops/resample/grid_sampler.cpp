// SPDX-License-Identifier: BSD-3-Clause
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

template <typename T>
using Computing = std::conditional_t<std::is_same_v<Compute<T>, T>, T, Rounded<T>>;

/// The operations and their order are those of ATen, whose every step rounds float16 and bfloat16:
/// there `T` is Rounded.
template <typename T>
struct Sampler {
  using Value = Stored<T>;

  int64_t interpolation, padding;
  bool align_corners;
  int64_t height, width;

  static T number(double x) { return T(static_cast<Value>(x)); }
  static T floor(T x) { return T(std::floor(stored(x))); }

  /// A grid coordinate, -1 to 1 over the image, in pixels.
  T to_pixels(T x, int64_t size) const {
    const double n = static_cast<double>(size);
    if (align_corners) return (x + number(1)) * number((n - 1) / 2);
    return (x + number(1)) * number(n / 2) - number(0.5);
  }

  /// NaN becomes 0.
  static T clip(T x, int64_t size) {
    const T low = number(0), last = number(static_cast<double>(size - 1));
    const T above = low < x ? x : low;
    return min(above, last);
  }

  /// Folds `x` back at the borders until it lies between them.
  T reflect(T x, int64_t size) const {
    const double n = static_cast<double>(size);
    const T twice = number(2 * (align_corners ? n - 1 : n));
    const T low = number(align_corners ? 0 : -0.5);
    if (align_corners && size == 1) return number(0);
    const T from_low = T(std::fabs(stored(x - low)));
    const T extra = from_low - T(std::trunc(stored(from_low / twice))) * twice;
    const T back = twice - extra;
    return min(back, extra) + low;
  }

  T keep_inside(T x, int64_t size) const {
    if (padding == kBorder) return clip(x, size);
    return padding == kReflection ? clip(reflect(x, size), size) : x;
  }

  /// A pixel by its coordinates; zero outside of the image, and for those no image could have.
  T pixel(const Value* plane, T at_y, T at_x) const {
    const Value y = stored(at_y), x = stored(at_x);
    const Value rows = static_cast<Value>(height), columns = static_cast<Value>(width);
    if (!(y >= 0 && y < rows && x >= 0 && x < columns)) return number(0);
    return T(plane[static_cast<int64_t>(y) * width + static_cast<int64_t>(x)]);
  }

  T bilinear(const Value* plane, T y, T x) const {
    y = keep_inside(y, height);
    x = keep_inside(x, width);
    const T top = floor(y), left = floor(x), one = number(1);
    const T n = y - top, s = one - n, w = x - left, e = one - w;
    return pixel(plane, top, left) * (e * s) + pixel(plane, top, left + one) * (w * s) +
           pixel(plane, top + one, left) * (e * n) + pixel(plane, top + one, left + one) * (w * n);
  }

  T nearest(const Value* plane, T y, T x) const {
    return pixel(plane, T(std::nearbyint(stored(keep_inside(y, height)))),
                 T(std::nearbyint(stored(keep_inside(x, width)))));
  }

  /// Weights of the four neighbours of a point `t` behind the second: cubic convolution, A = -3/4.
  static void cubic_weights(T t, T (&w)[4]) {
    const T a = number(-0.75), one = number(1);
    const auto inner = [&](T d) { return (number(1.25) * d - number(2.25)) * d * d + one; };
    const auto outer = [&](T d) {
      return ((a * d + number(3.75)) * d - number(6)) * d + number(3);
    };
    w[0] = outer(t + one);
    w[1] = inner(t);
    w[2] = inner(one - t);
    w[3] = outer(number(2) - t);
  }

  T bicubic(const Value* plane, T y, T x) const {
    const T top = floor(y), left = floor(x);
    T v[4], u[4], sum = number(0);
    cubic_weights(y - top, v);
    cubic_weights(x - left, u);
    for (int i = 0; i < 4; ++i) {
      const T at_y = keep_inside(top + number(i - 1), height);
      T line = number(0);
      for (int j = 0; j < 4; ++j) {
        line = line + u[j] * pixel(plane, at_y, keep_inside(left + number(j - 1), width));
      }
      sum = sum + v[i] * line;
    }
    return sum;
  }

  Value sample(const Value* plane, Value grid_y, Value grid_x) const {
    const T y = to_pixels(T(grid_y), height), x = to_pixels(T(grid_x), width);
    if (interpolation == kNearest) return stored(nearest(plane, y, x));
    return stored(interpolation == kBilinear ? bilinear(plane, y, x) : bicubic(plane, y, x));
  }
};

/// Samples all planes; `at` has `points` pairs for each image.
template <typename T>
void sample_all(Context& context, const Sampler<T>& sampler, const Stored<T>* x,
                const Stored<T>* at, int64_t images, int64_t channels, int64_t points,
                Stored<T>* y) {
  const int64_t plane = sampler.height * sampler.width;
  context.parallel_for(0, images * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Stored<T>* const pairs = at + i / channels * points * 2;
      for (int64_t j = 0; j < points; ++j) {
        y[i * points + j] = sampler.sample(x + i * plane, pairs[2 * j + 1], pairs[2 * j]);
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
  const int64_t channels = input.size(1), points = grid.size(1) * grid.size(2);
  Shape shape;
  for (const int64_t size : {input.size(0), input.size(1), grid.size(1), grid.size(2)}) {
    shape.push(size);
  }
  ETX_TRY(resize_out(context, out, shape));
  const ScalarType type = wide(out.scalar_type());
  return dispatch(Floating{}, out.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Value = Stored<Computing<T>>;
    const Value *x, *at;
    ResultOperand result;
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, grid, type, at));
    ETX_TRY(result.prepare(context, out, type));
    const Sampler<Computing<T>> sampler{interpolation_mode, padding_mode, align_corners,
                                        input.size(2), input.size(3)};
    sample_all(context, sampler, x, at, input.size(0), channels, points, result.data<Value>());
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::grid_sampler_2d.out", grid_sampler_2d_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(grid_sampler_kernels, kRows);

}  // namespace etx::portable
