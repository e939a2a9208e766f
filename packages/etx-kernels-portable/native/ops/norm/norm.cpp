// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/operand.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

constexpr int64_t kGrain = 32 * 1024;

/// Mean and biased variance; of nothing 0 and NaN.
template <typename T>
struct Moments {
  T mean, variance;
};

Moments<float> moments(const float* x, int64_t n) {
  const Isa& table = isa();
  const size_t count = static_cast<size_t>(n);
  const float mean = n == 0 ? 0 : table.sum(x, count) / static_cast<float>(n);
  return {mean, table.sum_squares(x, mean, count) / static_cast<float>(n)};
}

Moments<double> moments(const double* x, int64_t n) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = n == 0 ? 0 : sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, squares / static_cast<double>(n)};
}

/// y = (x - mean) rstd weight + bias for a row; weight and bias may be null.
void scale_row(const float* x, float mean, float rstd, const float* weight, const float* bias,
               float* y, int64_t n) {
  isa().scale_row(x, mean, rstd, weight, bias, y, static_cast<size_t>(n));
}

void scale_row(const double* x, double mean, double rstd, const double* weight, const double* bias,
               double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = (x[i] - mean) * rstd * (weight == nullptr ? 1 : weight[i]);
    y[i] = v + (bias == nullptr ? 0 : bias[i]);
  }
}

/// y = x scale + shift.
void affine(const float* x, float scale, float shift, float* y, int64_t n) {
  isa().affine(x, scale, shift, y, static_cast<size_t>(n));
}

void affine(const double* x, double scale, double shift, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

Error check_floating(Context& context, const Tensor& input, const Tensor& out) {
  ETX_CHECK(context, Floating::contains(input.scalar_type()), NotSupported,
            "normalisation takes floating dtypes");
  ETX_CHECK(context, out.scalar_type() == input.scalar_type(), InvalidArgument,
            "out must have the dtype of input");
  return Error::Ok;
}

Error check_parameter(Context& context, const std::optional<Tensor>& parameter, int64_t numel) {
  ETX_CHECK(context, !parameter.has_value() || parameter->numel() == numel, InvalidArgument,
            "weight and bias must have one element per channel (layer_norm: normalized_shape)");
  return Error::Ok;
}

/// The three results of a normalisation.
struct Results {
  ResultOperand out, mean, rstd;
  Error prepare(Context& context, const Tensor& o, const Tensor& m, const Tensor& r,
                ScalarType type) {
    ETX_TRY(out.prepare(context, o, type));
    ETX_TRY(mean.prepare(context, m, type));
    return rstd.prepare(context, r, type);
  }
  Error finish(Context& context, const Tensor& o, const Tensor& m, const Tensor& r) const {
    ETX_TRY(out.finish(context, o));
    ETX_TRY(mean.finish(context, m));
    return rstd.finish(context, r);
  }
};

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
  int64_t size;
  ETX_TRY(check_floating(context, input, out0));
  ETX_TRY(check_normalized(context, input, normalized_shape, size));
  ETX_TRY(check_parameter(context, weight, size));
  ETX_TRY(check_parameter(context, bias, size));
  Shape stats(input);
  for (size_t d = stats.rank() - normalized_shape.size(); d < stats.rank(); ++d) stats[d] = 1;
  ETX_TRY(resize_out(context, out0, Shape(input)));
  ETX_TRY(resize_out(context, out1, stats));
  ETX_TRY(resize_out(context, out2, stats));
  const ScalarType type = wide(input.scalar_type());
  return dispatch(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b;
    Results results;
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, weight, type, w));
    ETX_TRY(read_operand(context, bias, type, b));
    ETX_TRY(results.prepare(context, out0, out1, out2, type));
    T* const y = results.out.data<T>();
    T* const mean = results.mean.data<T>();
    T* const rstd = results.rstd.data<T>();
    const int64_t grain = size == 0 ? kGrain : divide_up(kGrain, size);
    context.parallel_for(0, out1.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Moments<T> m = moments(x + i * size, size);
        mean[i] = m.mean;
        rstd[i] = T{1} / std::sqrt(m.variance + static_cast<T>(eps));
        scale_row(x + i * size, mean[i], rstd[i], w, b, y + i * size, size);
      }
    });
    return results.finish(context, out0, out1, out2);
  });
}

Error native_group_norm_out(Context& context, const Tensor& input,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            int64_t batch, int64_t channels, int64_t points, int64_t group,
                            double eps, Tensor& out0, Tensor& out1, Tensor& out2) {
  ETX_TRY(check_floating(context, input, out0));
  ETX_CHECK(context, group >= 1 && channels >= 0 && channels % group == 0, InvalidArgument,
            "group must be positive and divide C");
  const bool fits = (Checked(batch) * channels * points).is(input.numel());
  ETX_CHECK(context, fits && batch >= 0 && points >= 0, InvalidArgument,
            "input must have N * C * HxW elements");
  ETX_TRY(check_parameter(context, weight, channels));
  ETX_TRY(check_parameter(context, bias, channels));
  Shape stats;
  stats.push(batch);
  stats.push(group);
  ETX_TRY(resize_out(context, out0, Shape(input)));
  ETX_TRY(resize_out(context, out1, stats));
  ETX_TRY(resize_out(context, out2, stats));
  const ScalarType type = wide(input.scalar_type());
  return dispatch(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b;
    Results results;
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, weight, type, w));
    ETX_TRY(read_operand(context, bias, type, b));
    ETX_TRY(results.prepare(context, out0, out1, out2, type));
    T* const y = results.out.data<T>();
    const int64_t width = points == 0 || batch == 0 ? 0 : channels / group;
    const int64_t size = width * points;
    const int64_t grain = size == 0 ? kGrain : divide_up(kGrain, size);
    context.parallel_for(0, batch * group, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Moments<T> m = moments(x + i * size, size);
        const T rstd = T{1} / std::sqrt(m.variance + static_cast<T>(eps));
        results.mean.data<T>()[i] = m.mean;
        results.rstd.data<T>()[i] = rstd;
        for (int64_t c = 0; c < width; ++c) {
          const int64_t channel = i % group * width + c, at = i * size + c * points;
          const T scale = w == nullptr ? rstd : rstd * w[channel];
          affine(x + at, scale, (b == nullptr ? T{0} : b[channel]) - m.mean * scale, y + at,
                 points);
        }
      }
    });
    return results.finish(context, out0, out1, out2);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::native_layer_norm.out", native_layer_norm_out, Floating::bits),
    ETX_KERNEL("aten::native_group_norm.out", native_group_norm_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(norm_kernels, kRows);

}  // namespace etx::portable
