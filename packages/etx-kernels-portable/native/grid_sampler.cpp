// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>
#include <etx/portable/dispatch.h>

#include "operand.h"
#include "shape.h"

namespace etx::portable {
namespace {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

template <typename T>
T clip(T x, int64_t size) {
  const T last = static_cast<T>(size - 1);
  return x > T{0} ? (x < last ? x : last) : T{0};
}

/// Folds `x` back at `low / 2` and `high / 2` until it lies between them.
template <typename T>
T reflect(T x, int64_t low, int64_t high) {
  if (low == high) return T{0};
  const T least = static_cast<T>(low) / 2, span = static_cast<T>(high - low) / 2;
  x = std::fabs(x - least);
  const T extra = std::fmod(x, span);
  const bool backwards = std::fmod(std::floor(x / span), T{2}) != T{0};
  return backwards ? span - extra + least : extra + least;
}

template <typename T>
struct Sampler {
  int64_t interpolation, padding;
  bool align_corners;
  int64_t height, width;

  /// A grid coordinate, -1 to 1 over the image, in pixels.
  T to_pixels(T x, int64_t size) const {
    const T n = static_cast<T>(size);
    return align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
  }

  T keep_inside(T x, int64_t size) const {
    if (padding == kBorder) return clip(x, size);
    if (padding == kReflection) {
      x = align_corners ? reflect(x, 0, 2 * (size - 1)) : reflect(x, -1, 2 * size - 1);
      return clip(x, size);
    }
    return x;
  }

  /// A pixel by its coordinates; zero outside of the image, and for those no image could have.
  T pixel(const T* plane, T y, T x) const {
    if (!(y >= 0 && y < static_cast<T>(height) && x >= 0 && x < static_cast<T>(width))) return 0;
    return plane[static_cast<int64_t>(y) * width + static_cast<int64_t>(x)];
  }

  T bilinear(const T* plane, T y, T x) const {
    y = keep_inside(y, height);
    x = keep_inside(x, width);
    const T top = std::floor(y), left = std::floor(x);
    const T v = y - top, u = x - left;
    return pixel(plane, top, left) * (1 - v) * (1 - u) + pixel(plane, top, left + 1) * (1 - v) * u +
           pixel(plane, top + 1, left) * v * (1 - u) + pixel(plane, top + 1, left + 1) * v * u;
  }

  T nearest(const T* plane, T y, T x) const {
    return pixel(plane, std::nearbyint(keep_inside(y, height)),
                 std::nearbyint(keep_inside(x, width)));
  }

  /// Weights of the four neighbours of a point `t` behind the second: cubic convolution, A = -3/4.
  static void cubic_weights(T t, T (&w)[4]) {
    constexpr T a = T(-0.75);
    const auto inner = [](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto outer = [](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    w[0] = outer(t + 1);
    w[1] = inner(t);
    w[2] = inner(1 - t);
    w[3] = outer(2 - t);
  }

  T bicubic(const T* plane, T y, T x) const {
    const T top = std::floor(y), left = std::floor(x);
    T v[4], u[4], sum = 0;
    cubic_weights(y - top, v);
    cubic_weights(x - left, u);
    for (int i = 0; i < 4; ++i) {
      T line = 0;
      for (int j = 0; j < 4; ++j) {
        line += u[j] * pixel(plane, keep_inside(top - 1 + static_cast<T>(i), height),
                             keep_inside(left - 1 + static_cast<T>(j), width));
      }
      sum += v[i] * line;
    }
    return sum;
  }

  T sample(const T* plane, T y, T x) const {
    y = to_pixels(y, height);
    x = to_pixels(x, width);
    if (interpolation == kNearest) return nearest(plane, y, x);
    return interpolation == kBilinear ? bilinear(plane, y, x) : bicubic(plane, y, x);
  }
};

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
  return dispatch(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *at;
    ResultOperand result;
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, grid, type, at));
    ETX_TRY(result.prepare(context, out, type));
    const Sampler<T> sampler{interpolation_mode, padding_mode, align_corners, input.size(2),
                             input.size(3)};
    const int64_t plane = input.size(2) * input.size(3);
    T* const y = result.data<T>();
    context.parallel_for(0, input.size(0) * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* const coordinates = at + i / channels * points * 2;
        for (int64_t j = 0; j < points; ++j) {
          y[i * points + j] =
              sampler.sample(x + i * plane, coordinates[2 * j + 1], coordinates[2 * j]);
        }
      }
    });
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::grid_sampler_2d.out", grid_sampler_2d_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(grid_sampler_kernels, kRows);

}  // namespace etx::portable
