// SPDX-License-Identifier: BSD-3-Clause
/// Variances and deviations in two passes.

#include <cmath>
#include <optional>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "isa/row_loops.h"
#include "ops/reduce/reduction.h"

namespace etx::portable {
namespace {

/// The sum of (x - center)^2 where float does not hold it; rarely called.
[[gnu::noinline]] double wide_squares(const float* x, double center, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += (x[i] - center) * (x[i] - center);
  return total;
}

/// What is computed, and where to; `mean` may be null.
struct Spread {
  bool root;
  double correction;
  const Tensor& out;
  const Tensor* mean = nullptr;
};

Error variance(Context& context, const Tensor& self, const std::optional<IntList>& dim,
               bool keepdim, const Spread& spread) {
  const Tensor& out = spread.out;
  const Tensor* const mean = spread.mean;
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, Floating::contains(self.scalar_type()), NotSupported,
            "self must have a floating dtype");
  ETX_CHECK(context, is_floating(to) && (mean == nullptr || mean->scalar_type() == to),
            InvalidArgument, "the outs must have a floating dtype");
  Reduction plan;
  const Tensor outs[] = {out, mean == nullptr ? out : *mean};
  ETX_TRY(plan_reduction(context, self, {dim.value_or(IntList()), keepdim}, outs, plan));
  const ScalarType as = wide(self.scalar_type());
  return dispatch<is_computed>(context, Join<Float32, Float64>{}, as, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Reader reader(self, as);
    const Writer writer(out, as);
    const Writer mean_writer(outs[1], as);
    const double freedom = static_cast<double>(plan.count) - spread.correction;
    const double divisor = max<double>(freedom, 0);
    const int64_t grain = 1 + 16384 / (plan.count + 1);
    const auto results = [&](int64_t begin, int64_t end) {
      plan.kept.for_each(begin, end, [&](const int64_t* offsets) {
        const auto rows = [&](const auto& f) {
          reader.for_each_folded(plan, offsets[0],
                                 [&](const void* x, int64_t n) { f(static_cast<const C*>(x), n); });
        };
        C total = 0, near = 0;
        rows([&](const C* x, int64_t n) { total += sum(x, n); });
        const C center = mean_of(total, plan.count, rows);
        rows([&](const C* x, int64_t n) { near += sum_squares(x, center, n); });
        double squares = near;
        if constexpr (std::is_same_v<C, float>) {
          if (!(near > 1e-30f && std::isfinite(near))) {
            squares = 0;
            rows([&](const C* x, int64_t n) { squares += wide_squares(x, center, n); });
          }
        }
        const double quotient = squares / divisor;
        const C result = static_cast<C>(spread.root ? std::sqrt(quotient) : quotient);
        writer.write(offsets[1], &result);
        if (mean != nullptr) mean_writer.write(offsets[1], &center);
      });
    };
    context.parallel_for(0, out.numel(), grain, Callback<int64_t, int64_t>(results));
    return Error::Ok;
  });
}

double correction_or_one(const std::optional<Scalar>& correction) {
  return correction.has_value() ? correction->to<double>() : 1;
}

Error var_out(Context& context, const Tensor& self, std::optional<IntList> dim, bool unbiased,
              bool keepdim, Tensor& out) {
  return variance(context, self, dim, keepdim, {false, unbiased ? 1.0 : 0.0, out});
}

template <bool root>
Error corrected_out(Context& context, const Tensor& self, std::optional<IntList> dim,
                    std::optional<Scalar> correction, bool keepdim, Tensor& out) {
  return variance(context, self, dim, keepdim, {root, correction_or_one(correction), out});
}

template <bool root>
Error with_mean_out(Context& context, const Tensor& self, std::optional<IntList> dim,
                    std::optional<Scalar> correction, bool keepdim, Tensor& out0, Tensor& out1) {
  return variance(context, self, dim, keepdim, {root, correction_or_one(correction), out0, &out1});
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::var.out", var_out, Floating::bits),
    ETX_KERNEL("aten::var.correction_out", corrected_out<false>, Floating::bits),
    ETX_KERNEL("aten::var_mean.correction_out", with_mean_out<false>, Floating::bits),
    ETX_KERNEL("aten::std.correction_out", corrected_out<true>, Floating::bits),
    ETX_KERNEL("aten::std_mean.correction_out", with_mean_out<true>, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(var_kernels, kRows);

}  // namespace etx::portable
