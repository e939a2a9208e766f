// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/operand.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/isa.h"
#include "isa/row_loops.h"

namespace etx::portable {
namespace {

constexpr int64_t kGrain = 32 * 1024;

/// Mean and biased variance; of nothing 0 and NaN.
template <typename T>
struct Moments {
  T mean, variance;
};

template <typename T>
Moments<T> moments(const T* x, int64_t n) {
  const T mean = n == 0 ? 0 : mean_of(sum(x, n), n, [&](const auto& add) { add(x, n); });
  return {mean, sum_squares(x, mean, n) / static_cast<T>(n)};
}

/// y = (x - mean) rstd weight + bias for a row; weight and bias may be null.
void scale_row(const float* x, float mean, float rstd, const float* weight, const float* bias,
               float* y, int64_t n) {
  isa().scale_row(x, mean, rstd, weight, bias, y, static_cast<size_t>(n));
}

void scale_row(const double* x, double mean, double rstd, const double* weight, const double* bias,
               double* y, int64_t n) {
  if (weight != nullptr && bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
  if (weight != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] *= weight[i];
  }
  if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] += bias[i];
  }
}

/// The operands of a normalisation, and the three results it resizes.
struct Normalization {
  const Tensor& input;
  const std::optional<Tensor>& weight;
  const std::optional<Tensor>& bias;
  double eps;
  const Tensor& out;
  const Tensor& mean;
  const Tensor& rstd;

  Error check(Context& context, int64_t parameters) const {
    ETX_CHECK(context, Floating::contains(input.scalar_type()), NotSupported,
              "normalisation takes floating dtypes");
    ETX_CHECK(context, out.scalar_type() == input.scalar_type(), InvalidArgument,
              "out must have the dtype of input");
    for (const auto* parameter : {&weight, &bias}) {
      ETX_CHECK(context, !parameter->has_value() || (*parameter)->numel() == parameters,
                InvalidArgument,
                "weight and bias must have one element per channel (layer_norm: normalized_shape)");
    }
    return Error::Ok;
  }
};

/// Normalises groups of `size` elements, one for each element of `stats`: calls `scale(group, x,
/// mean, rstd, weight, bias, y)`, in float or double.
template <typename Scale>
Error normalize(Context& context, const Normalization& n, const Shape& stats, int64_t size,
                const Scale& scale) {
  ETX_TRY(resize_out(context, n.out, Shape(n.input)));
  ETX_TRY(resize_out(context, n.mean, stats));
  ETX_TRY(resize_out(context, n.rstd, stats));
  const ScalarType type = wide(n.input.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b;
    ResultOperand out, mean, rstd;
    ETX_TRY(read_operand(context, n.input, type, x));
    ETX_TRY(read_operand(context, n.weight, type, w));
    ETX_TRY(read_operand(context, n.bias, type, b));
    ETX_TRY(out.prepare(context, n.out, type));
    ETX_TRY(mean.prepare(context, n.mean, type));
    ETX_TRY(rstd.prepare(context, n.rstd, type));
    const int64_t grain = size == 0 ? kGrain : divide_up(kGrain, size);
    context.parallel_for(0, n.mean.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Moments<T> m = moments(x + i * size, size);
        const T inverse = T{1} / std::sqrt(m.variance + static_cast<T>(n.eps));
        mean.data<T>()[i] = m.mean;
        rstd.data<T>()[i] = inverse;
        scale(i, x + i * size, m.mean, inverse, w, b, out.data<T>() + i * size);
      }
    });
    ETX_TRY(out.finish(context, n.out));
    ETX_TRY(mean.finish(context, n.mean));
    return rstd.finish(context, n.rstd);
  });
}

Error check_normalized(Context& context, const Tensor& input, IntList shape, int64_t& size) {
  const ssize_t rank = static_cast<ssize_t>(shape.size());
  ETX_CHECK(context, rank >= 1 && rank <= input.dim(), InvalidArgument,
            "normalized_shape must be the last dimensions of input");
  size = 1;
  for (ssize_t d = 0; d < rank; ++d) {
    ETX_CHECK(context, input.size(d - rank) == shape[static_cast<size_t>(d)], InvalidArgument,
              "normalized_shape must be the last dimensions of input");
    size *= shape[static_cast<size_t>(d)];
  }
  return Error::Ok;
}

Error native_layer_norm_out(Context& context, const Tensor& input, IntList normalized_shape,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            double eps, Tensor& out0, Tensor& out1, Tensor& out2) {
  const Normalization n{input, weight, bias, eps, out0, out1, out2};
  int64_t size;
  ETX_TRY(check_normalized(context, input, normalized_shape, size));
  ETX_TRY(n.check(context, size));
  Shape stats(input);
  for (size_t d = stats.rank() - normalized_shape.size(); d < stats.rank(); ++d) stats[d] = 1;
  return normalize(context, n, stats, size,
                   [size](int64_t, const auto* x, auto mean, auto rstd, const auto* w,
                          const auto* b, auto* y) { scale_row(x, mean, rstd, w, b, y, size); });
}

Error native_group_norm_out(Context& context, const Tensor& input,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            int64_t batch, int64_t channels, int64_t points, int64_t group,
                            double eps, Tensor& out0, Tensor& out1, Tensor& out2) {
  const Normalization n{input, weight, bias, eps, out0, out1, out2};
  ETX_CHECK(context, group >= 1 && channels >= 0 && channels % group == 0, InvalidArgument,
            "group must be positive and divide C");
  const bool fits = (Checked(batch) * channels * points).is(input.numel());
  ETX_CHECK(context, fits && batch >= 0 && points >= 0, InvalidArgument,
            "input must have N * C * HxW elements");
  ETX_TRY(n.check(context, channels));
  Shape stats;
  stats.push(batch);
  stats.push(group);
  const int64_t width = points == 0 || batch == 0 ? 0 : channels / group;
  const auto scale = [=](int64_t i, const auto* x, auto mean, auto rstd, const auto* w,
                         const auto* b, auto* y) {
    for (int64_t c = 0; c < width; ++c) {
      const int64_t channel = i % group * width + c, at = c * points;
      auto factor = w == nullptr ? rstd : rstd * w[channel];
      normalize_row(x + at, mean, factor, b == nullptr ? decltype(factor){0} : b[channel], y + at,
                    points);
    }
  };
  return normalize(context, n, stats, width * points, scale);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::native_layer_norm.out", native_layer_norm_out, Floating::bits),
    ETX_KERNEL("aten::native_group_norm.out", native_group_norm_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(norm_kernels, kRows);

}  // namespace etx::portable
