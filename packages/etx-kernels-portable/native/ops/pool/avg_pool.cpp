// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/row_loops.h"
#include "ops/conv/padded_planes.h"
#include "ops/pool/pool_planes.h"
#include "ops/pool/pool_shape.h"

namespace etx::portable {
namespace {

/// What a window's sum is divided by on one axis; the product over the axes counts its elements.
struct Divisor {
  bool count_include_pad;
  int64_t forced;  ///< 0: count.

  int64_t axis(const PoolShape& p, int a, int64_t o) const {
    if (!count_include_pad) return p.end(a, o) - p.begin(a, o);
    const int64_t begin = o * p.window.stride[a] - p.window.padding[a];
    const int64_t end = begin + p.window.kernel[a], limit = p.window.in[a] + p.window.padding[a];
    return min(end, limit) - begin;
  }
};

/// The lowest integer has no negative: it wraps.
template <typename T>
T divide(T sum, T count) {
  return count == T{-1} ? wrap_mul(sum, count) : sum / count;
}

/// Sums whole lines first, then the columns of the sum.
template <typename T>
void avg_pool_plane(const PoolShape& p, const Divisor& divisor, const T* x, T* line, T* y) {
  const ConvShape& w = p.window;
  const int64_t width = w.in[2];
  for (int64_t oy = 0; oy < w.out[1]; ++oy) {
    for (int64_t i = 0; i < width; ++i) line[i] = T{0};
    for (int64_t iy = p.begin(1, oy); iy < p.end(1, oy); ++iy) {
      const T* const from = x + iy * width;
      for (int64_t i = 0; i < width; ++i) line[i] = wrap_add(line[i], from[i]);
    }
    const int64_t height = divisor.axis(p, 1, oy);
    for (int64_t ox = 0; ox < w.out[2]; ++ox, ++y) {
      T sum = T{0};
      for (int64_t i = p.begin(2, ox); i < p.end(2, ox); ++i) sum = wrap_add(sum, line[i]);
      const int64_t count = divisor.forced != 0 ? divisor.forced : height * divisor.axis(p, 2, ox);
      *y = count == 0 ? T{0} : divide(sum, static_cast<T>(count));
    }
  }
}

/// The same a vector at a time, divided by what each window counts.
Error avg_pool_planes(Context& context, const PoolShape& p, const Divisor& divisor, const float* x,
                      float* y) {
  constexpr int64_t kFewWindows = 1024;
  const ConvShape& w = p.window;
  const int64_t size = w.out_size(), counted = min(divide_up(kFewWindows, size), p.planes);
  const int64_t width = w.out[2];
  ETX_ASSIGN(float* const counts,
             scratch<float>(context, width + counted * size, "no temporary memory for counts"));
  float* const all = counts + width;
  for (int64_t ox = 0; ox < width; ++ox) counts[ox] = static_cast<float>(divisor.axis(p, 2, ox));
  for (int64_t oy = 0; oy < counted * w.out[1]; ++oy) {
    const float height = static_cast<float>(divisor.axis(p, 1, oy % w.out[1]));
    isa().mul_scalar(counts, height, all + oy * width, static_cast<size_t>(width));
  }
  for (int64_t i = 0; i < counted * size; ++i) {
    if (divisor.forced != 0) all[i] = static_cast<float>(divisor.forced);
    if (all[i] == 0.0f) all[i] = 1.0f;  // Windows of nothing: their sum is 0.
  }
  return pool_planes(context, p, false, x, all, counted, y);
}

Error avg_pool2d_out(Context& context, const Tensor& self, IntList kernel_size, IntList stride,
                     IntList padding, bool ceil_mode, bool count_include_pad,
                     std::optional<int64_t> divisor_override, Tensor& out) {
  PoolShape shape;
  ETX_TRY(read_pool_shape(context, self, kernel_size, stride, padding, {}, ceil_mode, shape));
  ETX_CHECK(context, !divisor_override.has_value() || *divisor_override != 0, InvalidArgument,
            "divisor_override must not be zero");
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, Real::contains(self.scalar_type()), NotSupported,
            "avg_pool2d takes floating and integer dtypes");
  ETX_TRY(resize_pooled(context, self, shape, out));
  const Divisor divisor{count_include_pad, divisor_override.value_or(0)};
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(Computed{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ConvShape& w = shape.window;
    const Checked work = Checked(shape.planes) * w.in_size() * w.kernel[1];
    const int64_t threads = useful_threads(context, work);
    const T* x;
    ResultOperand result;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    if constexpr (std::is_same_v<T, float> && !kIsSmall) {
      if (shape.planes > 0 && PaddedPlanes(w).is_worthwhile(w)) {
        ETX_TRY(avg_pool_planes(context, shape, divisor, x, result.data<float>()));
        return result.finish(context, out);
      }
    }
    ETX_ASSIGN(T* const lines,
               scratch<T>(context, threads * w.in[2], "not enough temporary memory for a line"));
    context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; ++job) {
        const Part part(shape.planes, 1, job, threads);
        for (int64_t i = part.begin; i < part.end; ++i) {
          avg_pool_plane(shape, divisor, x + i * w.in_size(), lines + job * w.in[2],
                         result.data<T>() + i * w.out_size());
        }
      }
    });
    return result.finish(context, out);
  });
}

/// Output o of `size` takes the inputs from floor(o in / size) to ceil((o + 1) in / size).
template <typename T>
void adaptive_plane(const T* x, const int64_t (&in)[2], const int64_t (&size)[2], T* y) {
  if (size[0] == 1 && size[1] == 1) {
    *y = sum(x, in[0] * in[1]) / static_cast<T>(in[0] * in[1]);
    return;
  }
  for (int64_t o = 0; o < size[0] * size[1]; ++o) {
    const int64_t oy = o / size[1], ox = o % size[1];
    const int64_t top = oy * in[0] / size[0], bottom = divide_up((oy + 1) * in[0], size[0]);
    const int64_t left = ox * in[1] / size[1], right = divide_up((ox + 1) * in[1], size[1]);
    T total = T{0};
    for (int64_t iy = top; iy < bottom; ++iy) total += sum(x + iy * in[1] + left, right - left);
    y[o] = total / static_cast<T>((bottom - top) * (right - left));
  }
}

Error _adaptive_avg_pool2d_out(Context& context, const Tensor& self, IntList output_size,
                               Tensor& out) {
  ETX_CHECK(context, self.dim() == 3 || self.dim() == 4, InvalidArgument,
            "self must have three or four dimensions");
  ETX_CHECK(context, output_size.size() == 2 && output_size[0] >= 0 && output_size[1] >= 0,
            InvalidArgument, "output_size must have two items that are not negative");
  const int64_t in[2] = {self.size(-2), self.size(-1)};
  const int64_t size[2] = {output_size[0], output_size[1]};
  ETX_CHECK(context, in[0] >= 1 && in[1] >= 1, InvalidArgument,
            "the last two dimensions of self must not be empty");
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, Floating::contains(self.scalar_type()), NotSupported,
            "adaptive_avg_pool2d takes floating dtypes");
  Shape shape(self);
  shape[shape.rank() - 2] = size[0];
  shape[shape.rank() - 1] = size[1];
  ETX_TRY(resize_out(context, out, shape));
  const int64_t planes = self.size(-3) * (self.dim() == 4 ? self.size(0) : 1);
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x;
    ResultOperand result;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    T* const y = result.data<T>();
    const int64_t grain = divide_up(kThreadWork, in[0] * in[1]);
    context.parallel_for(0, planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        adaptive_plane(x + i * in[0] * in[1], in, size, y + i * size[0] * size[1]);
      }
    });
    return result.finish(context, out);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::avg_pool2d.out", avg_pool2d_out, Real::bits),
    ETX_KERNEL("aten::_adaptive_avg_pool2d.out", _adaptive_avg_pool2d_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(avg_pool_kernels, kRows);

}  // namespace etx::portable
