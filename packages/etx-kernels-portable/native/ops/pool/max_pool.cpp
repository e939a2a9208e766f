// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/conv/padded_planes.h"
#include "ops/pool/pool_planes.h"
#include "ops/pool/pool_shape.h"

namespace etx::portable {
namespace {

/// The first largest element of a window and where it lies in its plane.
template <typename T>
struct Largest {
  T value;
  int64_t index;
};

template <typename T>
Largest<T> largest_in(const PoolShape& p, const T* plane, int64_t oy, int64_t ox) {
  const ConvShape& w = p.window;
  const int64_t width = w.in[2];
  const int64_t begin_y = p.begin(1, oy), end_y = p.end(1, oy);
  const int64_t begin_x = p.begin(2, ox), end_x = p.end(2, ox);
  Largest<T> best{std::numeric_limits<T>::lowest(), begin_y * width + begin_x};
  if (std::numeric_limits<T>::has_infinity) best.value = -std::numeric_limits<T>::infinity();
  for (int64_t y = begin_y; y < end_y; y += w.dilation[1]) {
    for (int64_t x = begin_x; x < end_x; x += w.dilation[2]) {
      const T v = plane[y * width + x];
      if (v > best.value || v != v) best = {v, y * width + x};
    }
  }
  return best;
}

template <typename T>
Error max_pool(Context& context, const PoolShape& p, const T* x, T* y, int64_t* indices) {
  const ConvShape& w = p.window;
  context.parallel_for(0, p.planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t o = 0; o < w.out_size(); ++o) {
        const auto best = largest_in(p, x + i * w.in_size(), o / w.out[2], o % w.out[2]);
        y[i * w.out_size() + o] = best.value;
        if (indices != nullptr) indices[i * w.out_size() + o] = best.index;
      }
    }
  });
  return Error::Ok;
}

/// Float32: the taps of a convolution over planes padded with -inf. Large windows take those of a
/// line first, then the lines: the first largest of the first largest is that of the window.
struct MaxTaps {
  static constexpr int64_t kChunk = 4096, kMostTaps = 9;

  const PoolShape& shape;
  PaddedPlanes planes;
  int64_t lines;  ///< Of outputs at a time.
  bool in_steps;
  int32_t* offsets = nullptr;  ///< Of all taps; or those of a line, then those of the lines.
  int32_t* moves = nullptr;    ///< The same in the input.

  explicit MaxTaps(const PoolShape& p) : shape(p), planes(p.window) {
    planes.fill = -std::numeric_limits<float>::infinity();
    lines = kChunk / planes.length[2];
    lines = lines < 1 ? 1 : min(lines, p.window.out[1]);
    in_steps = p.window.taps() > kMostTaps;
  }

  int64_t taps() const {
    const ConvShape& w = shape.window;
    return in_steps ? w.kernel[1] + w.kernel[2] : w.taps();
  }
  /// Lines of one phase that `count` lines of outputs read.
  int64_t read(int64_t count) const {
    const ConvShape& w = shape.window;
    return count + (w.kernel[1] - 1) * w.dilation[1] / w.stride[1];
  }
  int64_t rows() const {
    return in_steps ? planes.phases[1] * read(lines) * planes.length[2] + PaddedPlanes::kSlack : 0;
  }
  int64_t made() const { return lines * planes.length[2] + PaddedPlanes::kSlack; }
  int64_t floats() const { return planes.channel() + PaddedPlanes::kSlack + 2 * (rows() + made()); }

  void plan() {
    const ConvShape& w = shape.window;
    for (int64_t t = 0; t < taps(); ++t) {
      const bool is_line = in_steps && t >= w.kernel[2];
      const int64_t y = (in_steps ? (is_line ? t - w.kernel[2] : 0) : t / w.kernel[2]);
      const int64_t x = in_steps ? (is_line ? 0 : t) : t % w.kernel[2];
      const int64_t at[] = {0, y * w.dilation[1], x * w.dilation[2]};
      moves[t] = static_cast<int32_t>(at[1] * w.in[2] + at[2]);
      const int64_t line = at[1] % w.stride[1] * read(lines) + at[1] / w.stride[1];
      offsets[t] = static_cast<int32_t>(is_line ? line * planes.length[2] : planes.offset(at));
    }
  }

  void store_line(const float* plane, int64_t oy, const float* best, const int32_t* at, float* y,
                  int64_t* indices) const {
    const ConvShape& w = shape.window;
    const int64_t corner = (oy * w.stride[1] - w.padding[1]) * w.in[2] - w.padding[2];
    const auto width = static_cast<size_t>(w.out[2]);
    if (!isa().store_window(best, at, corner, w.stride[2], y, indices, width)) return;
    for (int64_t ox = 0; ox < w.out[2]; ++ox) {
      if (best[ox] == planes.fill) indices[ox] = largest_in(shape, plane, oy, ox).index;
    }
  }

  /// `count` lines of outputs from `line` on.
  void run_lines(const float* padded, int64_t line, int64_t count, float* row, float* best,
                 int32_t* at) const {
    const ConvShape& w = shape.window;
    const int64_t width = planes.length[2], points = (count - 1) * width + w.out[2];
    const float* const from = padded + line * width;
    if (!in_steps) {
      isa().max_window(from, nullptr, offsets, moves, taps(), best, at, points);
      return;
    }
    int32_t* const row_at = reinterpret_cast<int32_t*>(row + rows());
    const int64_t points_read = (read(count) - 1) * width + w.out[2];
    for (int64_t phase = 0; phase < planes.phases[1]; ++phase) {
      const float* const plane = from + phase * planes.phases[2] * planes.plane();
      const int64_t to = phase * read(lines) * width;
      isa().max_window(plane, nullptr, offsets, moves, w.kernel[2], row + to, row_at + to,
                       points_read);
    }
    const int32_t* const down = offsets + w.kernel[2];
    isa().max_window(row, row_at, down, moves + w.kernel[2], w.kernel[1], best, at, points);
  }

  void run_plane(const float* plane, float* padded, float* y, int64_t* indices) const {
    const ConvShape& w = shape.window;
    float* const row = padded + planes.channel() + PaddedPlanes::kSlack;
    float* const best = row + 2 * rows();
    int32_t* const at = reinterpret_cast<int32_t*>(best + made());
    planes.copy_channels(plane, 1, padded);
    for (int64_t line = 0; line < w.out[1]; line += lines) {
      const int64_t count = min(w.out[1] - line, lines);
      run_lines(padded, line, count, row, best, at);
      for (int64_t i = 0; i < count; ++i, y += w.out[2]) {
        const int64_t first = i * planes.length[2];
        const int64_t done = (line + i) * w.out[2];
        store_line(plane, line + i, best + first, at + first, y, indices + done);
      }
    }
  }
};

Error max_pool(Context& context, const PoolShape& p, const float* x, float* y, int64_t* indices) {
  const ConvShape& w = p.window;
  if (!PaddedPlanes(w).is_worthwhile(w)) return max_pool<float>(context, p, x, y, indices);
  if (indices == nullptr) return pool_planes(context, p, true, x, nullptr, 0, y);
  MaxTaps work(p);
  const int64_t threads = useful_threads(context, Checked(p.planes) * w.out_size() * work.taps());
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, threads * work.floats(),
                            "not enough temporary memory for padded channels"));
  ETX_ASSIGN(work.moves, scratch<int32_t>(context, 2 * work.taps(),
                                          "not enough temporary memory for the window"));
  work.offsets = work.moves + work.taps();
  work.plan();
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      float* const padded = memory + job * work.floats();
      for (int64_t i = 0; i < PaddedPlanes::kSlack; ++i) {
        padded[work.planes.channel() + i] = work.planes.fill;
      }
      const Part part(p.planes, 1, job, threads);
      for (int64_t i = part.begin; i < part.end; ++i) {
        work.run_plane(x + i * w.in_size(), padded, y + i * w.out_size(),
                       indices + i * w.out_size());
      }
    }
  });
  return Error::Ok;
}

/// `indices` may be null.
Error max_pool_of(Context& context, const Tensor& self, const PoolShape& shape, const Tensor& out,
                  const Tensor* indices) {
  ETX_CHECK(context, out.scalar_type() == self.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  ETX_CHECK(context, Real::contains(self.scalar_type()), NotSupported,
            "max_pool2d takes floating and integer dtypes");
  ETX_TRY(resize_pooled(context, self, shape, out));
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(Computed{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x;
    ResultOperand result, positions;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    int64_t* at = nullptr;
    if (indices != nullptr) {
      ETX_TRY(positions.prepare(context, *indices, ScalarType::Long));
      at = positions.data<int64_t>();
    }
    if (shape.planes != 0) ETX_TRY(max_pool(context, shape, x, result.data<T>(), at));
    if (indices != nullptr) ETX_TRY(positions.finish(context, *indices));
    return result.finish(context, out);
  });
}

Error max_pool2d_with_indices_out(Context& context, const Tensor& self, IntList kernel_size,
                                  IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                                  Tensor& out, Tensor& indices) {
  PoolShape shape;
  ETX_TRY(read_pool_shape(context, self, kernel_size, stride, padding, dilation, ceil_mode, shape));
  ETX_CHECK(context, indices.scalar_type() == ScalarType::Long, InvalidArgument,
            "indices must be int64");
  ETX_TRY(resize_pooled(context, self, shape, indices));
  return max_pool_of(context, self, shape, out, &indices);
}

Error max_pool2d_out(Context& context, const Tensor& self, IntList kernel_size, IntList stride,
                     IntList padding, IntList dilation, bool ceil_mode, Tensor& out) {
  PoolShape shape;
  ETX_TRY(read_pool_shape(context, self, kernel_size, stride, padding, dilation, ceil_mode, shape));
  return max_pool_of(context, self, shape, out, nullptr);
}

/// The gradient of each maximum goes to the element it came from.
Error max_pool2d_with_indices_backward_grad_input(Context& context, const Tensor& grad_output,
                                                  const Tensor& self, IntList /*kernel_size*/,
                                                  IntList /*stride*/, IntList /*padding*/,
                                                  IntList /*dilation*/, bool /*ceil_mode*/,
                                                  const Tensor& indices, Tensor& grad_input) {
  const ssize_t rank = self.dim();
  ETX_CHECK(context, (rank == 3 || rank == 4) && grad_output.dim() == rank, InvalidArgument,
            "self and grad_output must both have three or four dimensions");
  ETX_CHECK(context, equal(grad_output.sizes(), indices.sizes()), InvalidArgument,
            "indices must have the shape of grad_output");
  ETX_CHECK(context, indices.scalar_type() == ScalarType::Long, InvalidArgument,
            "indices must be int64");
  ETX_CHECK(context,
            grad_output.scalar_type() == self.scalar_type() &&
                grad_input.scalar_type() == self.scalar_type(),
            InvalidArgument, "grad_output, self and grad_input must have the same dtype");
  ETX_CHECK(context, Real::contains(self.scalar_type()), NotSupported,
            "max_pool2d takes floating and integer dtypes");
  ETX_TRY(resize_out(context, grad_input, Shape(self)));
  const int64_t in = self.size(-1) * self.size(-2);
  const int64_t out = grad_output.size(-1) * grad_output.size(-2);
  const int64_t planes = self.size(-3) * (rank == 4 ? self.size(0) : 1);
  ETX_CHECK(context, (Checked(planes) * out).is(grad_output.numel()), InvalidArgument,
            "grad_output must have the batch and channels of self");
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(Computed{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* gradient;
    const int64_t* index;
    ResultOperand result;
    ETX_TRY(read_operand(context, grad_output, type, gradient));
    ETX_TRY(read_operand(context, indices, ScalarType::Long, index));
    ETX_TRY(result.prepare(context, grad_input, type));
    T* const to = result.data<T>();
    for (int64_t i = 0; i < planes * in; ++i) to[i] = T{0};
    for (int64_t i = 0; i < planes * out; ++i) {
      ETX_CHECK(context, index[i] >= 0 && index[i] < in, InvalidArgument,
                "indices must lie within a plane of self");
      T& sum = to[i / out * in + index[i]];
      sum = wrap_add(sum, gradient[i]);
    }
    return result.finish(context, grad_input);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::max_pool2d.out", max_pool2d_out, Real::bits),
    ETX_KERNEL("aten::max_pool2d_with_indices.out", max_pool2d_with_indices_out, Real::bits),
    ETX_KERNEL("aten::max_pool2d_with_indices_backward.grad_input",
               max_pool2d_with_indices_backward_grad_input, Real::bits),
};

}  // namespace

ETX_KERNEL_TABLE(max_pool_kernels, kRows);

}  // namespace etx::portable
