// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/row_loops.h"

namespace etx::portable {
namespace {

/// Elements that a thread should at least get.
constexpr int64_t kGrain = 32 * 1024;
/// Lines of a dimension that is not the last one are handled in strips this wide.
constexpr int64_t kStrip = 512;

/// A tensor seen as outer x size x inner.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(const Tensor& t, ssize_t dim) : size(size_of(t, dim)) {
    for (ssize_t d = 0; d < dim; ++d) outer *= t.size(d);
    for (ssize_t d = dim + 1; d < t.dim(); ++d) inner *= t.size(d);
  }
};

/// `size` lines, `width` of them side by side at `stride`, with 2 x kStrip floats of scratch.
void softmax_strip(const float* x, float* y, int64_t size, int64_t stride, size_t width, bool log,
                   float* scratch) {
  float* const top = scratch;
  float* const sum = scratch + kStrip;
  for (size_t j = 0; j < width; ++j) top[j] = x[j], sum[j] = 0.0f;
  for (int64_t i = 1; i < size; ++i) isa().maximum(top, x + i * stride, top, width);
  for (int64_t i = 0; i < size; ++i) {
    float* const row = y + i * stride;
    isa().sub(x + i * stride, top, row, width);
    isa().exp(row, row, width);
    isa().add(sum, row, sum, width);
  }
  if (log) isa().log(sum, sum, width);
  for (int64_t i = 0; i < size; ++i) {
    float* const row = y + i * stride;
    if (log) {
      isa().sub(x + i * stride, top, row, width);
      isa().sub(row, sum, row, width);
    } else {
      isa().div(row, sum, row, width);
    }
  }
}

/// Lines that are too short for vectors: turned, so that neighbouring ones are side by side.
constexpr int64_t kShort = 16, kShortLines = 128;
/// As many lines side by side, or more, fill vectors; fewer that are up to so long are turned.
constexpr int64_t kFewLines = 16, kTurned = 2048;

void softmax_short(const float* x, float* y, const Lines& lines, int64_t begin, int64_t end,
                   bool log) {
  alignas(64) float turned[kShort * kShortLines], made[kShort * kShortLines], scratch[2 * kStrip];
  int64_t places[kShortLines];
  const int64_t size = lines.size, inner = lines.inner;
  for (int64_t first = begin; first < end; first += kShortLines) {
    const int64_t n = min(end - first, kShortLines);
    if (inner == 1) {
      isa().store_transposed(x + first * size, size, n, size, turned, n);
      softmax_strip(turned, made, size, n, static_cast<size_t>(n), log, scratch);
      isa().store_transposed(made, n, size, n, y + first * size, size);
      continue;
    }
    int64_t place = first / inner * size * inner + first % inner, next = inner - first % inner;
    for (int64_t j = 0; j < n; ++j, ++place) {
      if (next-- == 0) place += (size - 1) * inner, next = inner - 1;
      places[j] = place;
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < size; ++i) turned[i * n + j] = x[places[j] + i * inner];
    }
    softmax_strip(turned, made, size, n, static_cast<size_t>(n), log, scratch);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < size; ++i) y[places[j] + i * inner] = made[i * n + j];
    }
  }
}

void softmax_rows(const float* x, float* y, size_t length, size_t rows, bool log) {
  if (log) return isa().log_softmax_rows(x, y, length, rows);
  for (; rows > 0; --rows, x += length, y += length) isa().softmax_row(x, y, length);
}

/// Those of `end - begin` outer indices, the few lines side by side of some of them turned at a
/// time.
void softmax_turned(const float* x, float* y, const Lines& lines, int64_t begin, int64_t end,
                    bool log) {
  alignas(64) float turned[2 * kTurned];
  const int64_t size = lines.size, inner = lines.inner, most = 2 * kTurned / size;
  for (int64_t i = begin, count = 0; i < end; i += count) {
    count = min(end - i, max<int64_t>(most / inner, 1));
    const int64_t at = i * size * inner, rows = count * size;
    for (int64_t first = 0; first < inner; first += most) {
      const int64_t n = min(inner - first, most);
      isa().store_transposed(x + at + first, inner, rows, n, turned, rows);
      softmax_rows(turned, turned, static_cast<size_t>(size), static_cast<size_t>(n * count), log);
      isa().store_transposed(turned, rows, n, rows, y + at + first, inner);
    }
  }
}

Error softmax_lines(Context& context, const float* x, float* y, const Lines& lines, bool log) {
  const int64_t size = lines.size, inner = lines.inner, count = lines.outer * inner;
  const bool is_short = size <= kShort && count > 4;
  if (!kIsSmall && inner < kFewLines && (is_short || (inner > 1 && size <= kTurned))) {
    const int64_t jobs = is_short ? count : lines.outer, each = is_short ? size : size * inner;
    context.parallel_for(0, jobs, divide_up(kGrain, each), [&](int64_t b, int64_t e) {
      (is_short ? softmax_short : softmax_turned)(x, y, lines, b, e, log);
    });
    return Error::Ok;
  }
  if (inner == 1) {
    const auto length = static_cast<size_t>(size);
    context.parallel_for(0, lines.outer, divide_up(kGrain, size), [&](int64_t b, int64_t e) {
      softmax_rows(x + b * size, y + b * size, length, static_cast<size_t>(e - b), log);
    });
    return Error::Ok;
  }
  const int64_t strips = divide_up(inner, kStrip);
  context.parallel_for(
      0, lines.outer * strips, divide_up(kGrain, size * kStrip), [&](int64_t b, int64_t e) {
        alignas(64) float scratch[2 * kStrip];
        for (int64_t i = b; i < e; ++i) {
          const int64_t first = i % strips * kStrip, left = inner - first;
          const int64_t at = i / strips * size * inner + first;
          const int64_t width = min<int64_t>(left, kStrip);
          softmax_strip(x + at, y + at, size, inner, static_cast<size_t>(width), log, scratch);
        }
      });
  return Error::Ok;
}

/// As that of floats: strips of lines side by side.
void softmax_strip(const double* x, double* y, int64_t size, int64_t stride, int64_t width,
                   bool log) {
  double top[kStrip], sum[kStrip];
  for (int64_t j = 0; j < width; ++j) top[j] = x[j], sum[j] = 0;
  for (int64_t i = 1; i < size; ++i) {
    const double* const row = x + i * stride;
    for (int64_t j = 0; j < width; ++j) {
      top[j] = row[j] > top[j] || row[j] != row[j] ? row[j] : top[j];
    }
  }
  for (int64_t i = 0; i < size; ++i) {
    double* const row = y + i * stride;
    for (int64_t j = 0; j < width; ++j) row[j] = x[i * stride + j] - top[j];
    isa().exp_double(row, row, static_cast<size_t>(width));
    for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
  }
  if (log) isa().log_double(sum, sum, static_cast<size_t>(width));
  for (int64_t i = 0; i < size; ++i) {
    double* const row = y + i * stride;
    const double* const from = x + i * stride;
    for (int64_t j = 0; log && j < width; ++j) row[j] = from[j] - top[j] - sum[j];
    for (int64_t j = 0; !log && j < width; ++j) row[j] /= sum[j];
  }
}

/// One line of neighbours.
void softmax_row(const double* x, double* y, int64_t n, bool log) {
  const auto larger = [](double a, double v) { return v > a ? v : a; };
  const double top = in_lanes(x, n, -std::numeric_limits<double>::infinity(), larger, larger);
  const double total = isa().exp_sum_double(x, top, y, static_cast<size_t>(n));
  if (log) {
    const double shift = std::log(total);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - top - shift;
  } else {
    const double scale = 1 / total;
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
}

Error softmax_lines(Context& context, const double* x, double* y, const Lines& lines, bool log) {
  if (lines.inner == 1) {
    const int64_t size = lines.size;
    context.parallel_for(0, lines.outer, divide_up(kGrain, size), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) softmax_row(x + i * size, y + i * size, size, log);
    });
    return Error::Ok;
  }
  const int64_t size = lines.size, inner = lines.inner, strips = divide_up(inner, kStrip);
  context.parallel_for(
      0, lines.outer * strips, divide_up(kGrain, size * kStrip), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const int64_t first = i % strips * kStrip, at = i / strips * size * inner + first;
          softmax_strip(x + at, y + at, size, inner, min<int64_t>(inner - first, kStrip), log);
        }
      });
  return Error::Ok;
}

Error softmax(Context& context, const Tensor& self, int64_t dim, bool half_to_float, bool log,
              const Tensor& out) {
  ssize_t axis;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_CHECK(context, Floating::contains(self.scalar_type()), NotSupported,
            "softmax takes floating dtypes");
  ETX_CHECK(context, out.scalar_type() == (half_to_float ? ScalarType::Float : self.scalar_type()),
            InvalidArgument, "out must have the dtype of self, or float32 with half_to_float");
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (self.numel() == 0) return Error::Ok;
  const ScalarType type = wide(self.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x;
    ResultOperand result;
    ETX_TRY(read_operand(context, self, type, x));
    ETX_TRY(result.prepare(context, out, type));
    ETX_TRY(softmax_lines(context, x, result.data<T>(), Lines(self, axis), log));
    return result.finish(context, out);
  });
}

Error _softmax_out(Context& context, const Tensor& self, int64_t dim, bool half_to_float,
                   Tensor& out) {
  return softmax(context, self, dim, half_to_float, false, out);
}

Error _log_softmax_out(Context& context, const Tensor& self, int64_t dim, bool half_to_float,
                       Tensor& out) {
  return softmax(context, self, dim, half_to_float, true, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_softmax.out", _softmax_out, Floating::bits),
    ETX_KERNEL("aten::_log_softmax.out", _log_softmax_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(softmax_kernels, kRows);

}  // namespace etx::portable
