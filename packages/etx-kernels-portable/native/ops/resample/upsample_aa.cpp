// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/scratch.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

/// The triangle filter along one dimension: output i is the sum of `counts[i]` inputs from
/// `starts[i]` on, times the weights from `i * width` on.
template <typename C>
struct Filter {
  int64_t in;
  int64_t out;
  int64_t width;
  int32_t* starts;
  int32_t* counts;
  C* weights;
};

template <typename C>
C step_of(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (align_corners) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : 0;
  if (scale.has_value() && *scale > 0) return static_cast<C>(1.0 / *scale);
  return static_cast<C>(in) / static_cast<C>(out);
}

/// Fills the filter, in the precision in which eager computes it: a dimension that keeps its size
/// stays as it is, whatever the scale.
template <typename C>
Error make_filter(Context& context, C step, Filter<C>& filter) {
  const bool same = filter.in == filter.out;
  const C reach = step > 1 && !same ? step : 1;
  ETX_CHECK(context, reach < C(INT32_MAX), InvalidArgument, "scales must not be that small");
  const C span = same ? 1 : 2 * std::ceil(reach) + 1;
  filter.width = span < static_cast<C>(filter.in) ? static_cast<int64_t>(span) : filter.in;
  constexpr const char* kNoMemory = "no temporary memory for the weights of the filter";
  ETX_ASSIGN(filter.starts, scratch<int32_t>(context, filter.out, kNoMemory));
  ETX_ASSIGN(filter.counts, scratch<int32_t>(context, filter.out, kNoMemory));
  ETX_ASSIGN(filter.weights, scratch<C>(context, filter.out * filter.width, kNoMemory));
  const C size = static_cast<C>(filter.in);
  for (int64_t i = 0; i < filter.out && same; ++i) {
    filter.starts[i] = static_cast<int32_t>(i);
    filter.counts[i] = 1;
    filter.weights[i] = 1;
  }
  for (int64_t i = 0; i < filter.out && !same; ++i) {
    const C center = step * (static_cast<C>(i) + C(0.5));
    const C first = center - reach + C(0.5);
    const C last = center + reach + C(0.5);
    int64_t begin = first > 0 ? (first < size ? static_cast<int64_t>(first) : filter.in) : 0;
    const int64_t end = last < size ? static_cast<int64_t>(last) : filter.in;
    if (begin >= end) begin = end > 0 ? end - 1 : 0;
    const int64_t n = min(end - begin, filter.width);
    C* const weights = filter.weights + i * filter.width;
    C total = 0;
    for (int64_t k = 0; k < n; ++k) {
      const C at = (static_cast<C>(begin + k) - center + C(0.5)) / reach;
      const C distance = at < 0 ? -at : at;
      weights[k] = distance < 1 ? 1 - distance : 0;
      total += weights[k];
    }
    for (int64_t k = 0; k < n && total != 0; ++k) weights[k] /= total;
    filter.starts[i] = static_cast<int32_t>(begin);
    filter.counts[i] = static_cast<int32_t>(n);
  }
  return Error::Ok;
}

template <typename T, typename C>
void resize_plane(const Tensor& self, int64_t from, const Tensor& out, int64_t to,
                  const Filter<C>& y, const Filter<C>& x, C* rows) {
  const T* const src = self.const_data_ptr<T>() + from;
  T* const dst = out.mutable_data_ptr<T>() + to;
  for (int64_t r = 0; r < y.in; ++r) {
    const T* const row = src + r * self.stride(2);
    for (int64_t i = 0; i < x.out; ++i) {
      const C* const weights = x.weights + i * x.width;
      C sum = 0;
      for (int64_t k = 0; k < x.counts[i]; ++k) {
        sum += weights[k] * static_cast<C>(row[(x.starts[i] + k) * self.stride(3)]);
      }
      rows[r * x.out + i] = sum;
    }
  }
  C* const line = rows + y.in * x.out;
  for (int64_t r = 0; r < y.out; ++r) {
    const C* const weights = y.weights + r * y.width;
    for (int64_t i = 0; i < x.out; ++i) line[i] = 0;
    for (int64_t k = 0; k < y.counts[r]; ++k) {
      const C weight = weights[k];
      const C* const row = rows + (y.starts[r] + k) * x.out;
      for (int64_t i = 0; i < x.out; ++i) line[i] += weight * row[i];
    }
    for (int64_t i = 0; i < x.out; ++i) {
      dst[r * out.stride(2) + i * out.stride(3)] = static_cast<T>(line[i]);
    }
  }
}

Error upsample_bilinear2d_aa_out(Context& context, const Tensor& self, IntList output_size,
                                 bool align_corners, std::optional<double> scales_h,
                                 std::optional<double> scales_w, Tensor& out) {
  ETX_CHECK(context, self.dim() == 4, InvalidArgument, "self must have 4 dimensions");
  ETX_CHECK(context, output_size.size() == 2 && output_size[0] > 0 && output_size[1] > 0,
            InvalidArgument, "output_size must hold two positive numbers");
  ETX_CHECK(context, self.size(2) > 0 && self.size(3) > 0, InvalidArgument,
            "height and width of self must be positive");
  ETX_TRY(check_output(context, self, out));
  Shape shape(self);
  shape[2] = output_size[0];
  shape[3] = output_size[1];
  ETX_TRY(resize_out(context, out, shape));
  if (out.numel() == 0) return Error::Ok;
  return dispatch(context, Floating{}, self.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    Filter<C> y{self.size(2), output_size[0], 0, nullptr, nullptr, nullptr};
    Filter<C> x{self.size(3), output_size[1], 0, nullptr, nullptr, nullptr};
    ETX_TRY(make_filter(context, step_of<C>(y.in, y.out, align_corners, scales_h), y));
    ETX_TRY(make_filter(context, step_of<C>(x.in, x.out, align_corners, scales_w), x));
    ETX_ASSIGN(C* const rows, scratch<C>(context, (y.in + 1) * x.out,
                                         "no temporary memory for the rows of the image"));
    for (int64_t n = 0; n < self.size(0); ++n) {
      for (int64_t c = 0; c < self.size(1); ++c) {
        resize_plane<T>(self, n * self.stride(0) + c * self.stride(1), out,
                        n * out.stride(0) + c * out.stride(1), y, x, rows);
      }
    }
    return Error::Ok;
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_upsample_bilinear2d_aa.out", upsample_bilinear2d_aa_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(upsample_aa_kernels, kRows);

}  // namespace etx::portable
