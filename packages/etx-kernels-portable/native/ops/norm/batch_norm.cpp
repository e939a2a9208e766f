// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/row_loops.h"

namespace etx::portable {
namespace {

constexpr int64_t kGrain = 32 * 1024;

/// The operands of a batch normalisation of batch x channels x points elements.
struct BatchNorm {
  const Tensor& input;
  const std::optional<Tensor>& weight;
  const std::optional<Tensor>& bias;
  double eps;
  int64_t batch = 0, channels = 0, points = 1;

  Error check(Context& context, const Tensor& out) {
    ETX_CHECK(context, input.dim() >= 2, InvalidArgument,
              "input must have a batch and a channel dimension");
    ETX_CHECK(context, Floating::contains(input.scalar_type()), NotSupported,
              "batch normalisation takes floating dtypes");
    ETX_CHECK(context, out.scalar_type() == input.scalar_type(), InvalidArgument,
              "out must have the dtype of input");
    batch = input.size(0);
    channels = input.size(1);
    for (ssize_t d = 2; d < input.dim(); ++d) points *= input.size(d);
    if (points == 0) batch = 0;
    for (const auto* parameter : {&weight, &bias}) {
      ETX_CHECK(context, !parameter->has_value() || (*parameter)->numel() == channels,
                InvalidArgument, "weight and bias must have one element per channel");
    }
    return Error::Ok;
  }
};

/// Mean and biased variance of each channel.
template <typename T>
void channel_moments(const BatchNorm& n, const T* x, T* mean, T* variance) {
  const int64_t count = n.batch * n.points;
  for (int64_t c = 0; c < n.channels; ++c) {
    const auto planes = [&](const auto& f) {
      for (int64_t i = 0; i < n.batch; ++i) f(x + (i * n.channels + c) * n.points, n.points);
    };
    T total = 0, squares = 0;
    planes([&](const T* plane, int64_t points) { total += sum(plane, points); });
    mean[c] = mean_of(total, count, planes);
    planes([&](const T* plane, int64_t points) { squares += sum_squares(plane, mean[c], points); });
    variance[c] = squares / static_cast<T>(count);
  }
}

/// The same of rows of a few points: channels are what lies side by side.
template <typename T>
void normalize_channels(Context& context, const BatchNorm& n, const T* x, const T* mean,
                        const T* invstd, const T* w, const T* b, T* y) {
  constexpr int64_t kBlock = 256;
  const int64_t row = n.channels * n.points, grain = divide_up(kGrain, row + 1);
  context.parallel_for(0, n.batch, grain, [&](int64_t begin, int64_t end) {
    T means[kBlock], scales[kBlock], shifts[kBlock];
    for (int64_t first = 0; first < row; first += kBlock) {
      const int64_t count = min(row - first, kBlock);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t c = (first + j) / n.points;
        means[j] = mean[c];
        scales[j] = w == nullptr ? invstd[c] : invstd[c] * w[c];
        shifts[j] = b == nullptr ? T{0} : b[c];
      }
      for (int64_t i = begin; i < end; ++i) {
        const T* const from = x + i * row + first;
        T* const to = y + i * row + first;
        for (int64_t j = 0; j < count; ++j) to[j] = (from[j] - means[j]) * scales[j] + shifts[j];
      }
    }
  });
}

/// y = (x - mean) invstd weight + bias with one of each per channel.
template <typename T>
void normalize(Context& context, const BatchNorm& n, const T* x, const T* mean, const T* invstd,
               const T* w, const T* b, T* y) {
  constexpr int64_t kFewPoints = 16;
  if (!kIsSmall && n.points < kFewPoints) {
    return normalize_channels(context, n, x, mean, invstd, w, b, y);
  }
  const int64_t grain = divide_up(kGrain, n.points + 1);
  context.parallel_for(0, n.batch * n.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % n.channels, at = i * n.points;
      const T scale = w == nullptr ? invstd[c] : invstd[c] * w[c];
      normalize_row(x + at, mean[c], scale, b == nullptr ? T{0} : b[c], y + at, n.points);
    }
  });
}

/// The same of elements of dtype `other`, a block at a time.
template <typename T>
void normalize_blocks(Context& context, const BatchNorm& n, ScalarType other, ScalarType type,
                      const T* mean, const T* invstd, const T* w, const T* b, const Tensor& out) {
  constexpr int64_t kBlock = 1024;
  const int64_t grain = divide_up(kGrain, n.points + 1),
                size = static_cast<int64_t>(out.element_size());
  const char* const x = n.input.const_data_ptr<char>();
  char* const y = out.mutable_data_ptr<char>();
  context.parallel_for(0, n.batch * n.channels, grain, [&](int64_t begin, int64_t end) {
    T block[kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % n.channels;
      const T scale = w == nullptr ? invstd[c] : invstd[c] * w[c];
      for (int64_t k = 0; k < n.points; k += kBlock) {
        const int64_t count = min(n.points - k, kBlock), at = (i * n.points + k) * size;
        cast(x + at, other, 1, block, type, count);
        normalize_row(block, mean[c], scale, b == nullptr ? T{0} : b[c], block, count);
        cast(block, type, 1, y + at, other, count);
      }
    }
  });
}

/// stat = (1 - momentum) stat + momentum batch_stat factor, in the running statistic's own dtype.
template <typename T>
Error update_running(Context& context, const Tensor& running, const T* batch_stat, double momentum,
                     double factor, ScalarType type) {
  const T* old;
  ResultOperand result;
  ETX_TRY(read_operand(context, running, type, old));
  ETX_TRY(result.prepare(context, running, type));
  for (ssize_t c = 0; c < running.numel(); ++c) {
    const double fresh = momentum * factor * static_cast<double>(batch_stat[c]);
    result.data<T>()[c] = static_cast<T>((1 - momentum) * static_cast<double>(old[c]) + fresh);
  }
  return result.finish(context, running);
}

struct Running {
  const Tensor* mean;
  const Tensor* var;
  double momentum;
};

Error check_running(Context& context, const BatchNorm& n, const Tensor& mean, const Tensor& var) {
  ETX_CHECK(context, mean.numel() == n.channels && var.numel() == n.channels, InvalidArgument,
            "running_mean and running_var must have one element per channel");
  return Error::Ok;
}

/// Batch statistics normalise; they are saved, and added to the running ones where there are any.
Error normalize_by_batch(Context& context, BatchNorm& n, const Running* running, Tensor& out,
                         Tensor& save_mean, Tensor& save_invstd) {
  ETX_TRY(n.check(context, out));
  if (running != nullptr) ETX_TRY(check_running(context, n, *running->mean, *running->var));
  Shape stats;
  stats.push(n.channels);
  ETX_TRY(resize_out(context, out, Shape(n.input)));
  ETX_TRY(resize_out(context, save_mean, stats));
  ETX_TRY(resize_out(context, save_invstd, stats));
  const ScalarType type = wide(n.input.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b;
    ResultOperand result, mean, invstd;
    ETX_TRY(read_operand(context, n.input, type, x));
    ETX_TRY(read_operand(context, n.weight, type, w));
    ETX_TRY(read_operand(context, n.bias, type, b));
    ETX_TRY(result.prepare(context, out, type));
    ETX_TRY(mean.prepare(context, save_mean, type));
    ETX_TRY(invstd.prepare(context, save_invstd, type));
    channel_moments(n, x, mean.data<T>(), invstd.data<T>());
    if (running != nullptr) {
      const double count = static_cast<double>(n.batch * n.points);
      ETX_TRY(
          update_running(context, *running->mean, mean.data<T>(), running->momentum, 1.0, type));
      ETX_TRY(update_running(context, *running->var, invstd.data<T>(), running->momentum,
                             count / (count - 1), type));
    }
    for (int64_t c = 0; c < n.channels; ++c) {
      invstd.data<T>()[c] = T{1} / std::sqrt(invstd.data<T>()[c] + static_cast<T>(n.eps));
    }
    normalize(context, n, x, mean.data<T>(), invstd.data<T>(), w, b, result.data<T>());
    ETX_TRY(result.finish(context, out));
    ETX_TRY(mean.finish(context, save_mean));
    return invstd.finish(context, save_invstd);
  });
}

/// Running statistics normalise; nothing is saved.
Error normalize_by_running(Context& context, BatchNorm& n, const Tensor& running_mean,
                           const Tensor& running_var, Tensor& out, Tensor& save_mean,
                           Tensor& save_invstd) {
  ETX_TRY(n.check(context, out));
  ETX_TRY(check_running(context, n, running_mean, running_var));
  Shape none;
  none.push(0);
  ETX_TRY(resize_out(context, out, Shape(n.input)));
  ETX_TRY(resize_out(context, save_mean, none));
  ETX_TRY(resize_out(context, save_invstd, none));
  const ScalarType type = wide(n.input.scalar_type());
  return dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x, *w, *b, *mean, *variance;
    ResultOperand result;
    ETX_TRY(read_operand(context, n.weight, type, w));
    ETX_TRY(read_operand(context, n.bias, type, b));
    ETX_TRY(read_operand(context, running_mean, type, mean));
    ETX_TRY(read_operand(context, running_var, type, variance));
    ETX_ASSIGN(T* const invstd,
               scratch<T>(context, n.channels, "not enough temporary memory for the statistics"));
    for (int64_t c = 0; c < n.channels; ++c) {
      invstd[c] = T{1} / std::sqrt(variance[c] + static_cast<T>(n.eps));
    }
    constexpr int64_t kFew = 32;
    const ScalarType dtype = n.input.scalar_type();
    if (!kIsSmall && dtype != type && n.points >= kFew && n.input.is_contiguous() &&
        out.is_contiguous()) {
      normalize_blocks(context, n, dtype, type, mean, invstd, w, b, out);
      return Error::Ok;
    }
    ETX_TRY(read_operand(context, n.input, type, x));
    ETX_TRY(result.prepare(context, out, type));
    normalize(context, n, x, mean, invstd, w, b, result.data<T>());
    return result.finish(context, out);
  });
}

Error _native_batch_norm_legit_no_training_out(
    Context& context, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias, const Tensor& running_mean, const Tensor& running_var,
    double /*momentum*/, double eps, Tensor& out0, Tensor& out1, Tensor& out2) {
  BatchNorm n{input, weight, bias, eps};
  return normalize_by_running(context, n, running_mean, running_var, out0, out1, out2);
}

Error _native_batch_norm_legit_out(Context& context, const Tensor& input,
                                   const std::optional<Tensor>& weight,
                                   const std::optional<Tensor>& bias, Tensor& running_mean,
                                   Tensor& running_var, bool training, double momentum, double eps,
                                   Tensor& out, Tensor& save_mean, Tensor& save_invstd) {
  BatchNorm n{input, weight, bias, eps};
  if (!training) {
    return normalize_by_running(context, n, running_mean, running_var, out, save_mean, save_invstd);
  }
  const Running running{&running_mean, &running_var, momentum};
  return normalize_by_batch(context, n, &running, out, save_mean, save_invstd);
}

Error _native_batch_norm_legit_no_stats_out(Context& context, const Tensor& input,
                                            const std::optional<Tensor>& weight,
                                            const std::optional<Tensor>& bias, bool /*training*/,
                                            double /*momentum*/, double eps, Tensor& out,
                                            Tensor& save_mean, Tensor& save_invstd) {
  BatchNorm n{input, weight, bias, eps};
  return normalize_by_batch(context, n, nullptr, out, save_mean, save_invstd);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_native_batch_norm_legit_no_training.out",
               _native_batch_norm_legit_no_training_out, Floating::bits),
    ETX_KERNEL("aten::_native_batch_norm_legit.out", _native_batch_norm_legit_out, Floating::bits),
    ETX_KERNEL("aten::_native_batch_norm_legit.no_stats_out", _native_batch_norm_legit_no_stats_out,
               Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(batch_norm_kernels, kRows);

}  // namespace etx::portable
