// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>
#include <etx/plugin.h>

namespace etx {
namespace {

/// out = scale * a + b, elementwise; `b` may be null.
Error combine(Context& context, const Tensor& a, float scale, const Tensor* b, Tensor& out) {
  ETX_CHECK(context, a.scalar_type() == ScalarType::Float, NotSupported, "expected float32");
  ETX_TRY(out.resize(a.sizes()));
  const float* x = a.const_data_ptr<float>();
  const float* y = b == nullptr ? nullptr : b->const_data_ptr<float>();
  float* z = out.mutable_data_ptr<float>();
  for (ssize_t i = 0; i < a.numel(); ++i) z[i] = scale * x[i] + (y == nullptr ? 0 : y[i]);
  return Error::Ok;
}

Error twice_out(Context& context, const Tensor& x, Tensor& out) {
  return combine(context, x, 2, nullptr, out);
}

Error doubled_out(Context& context, const Tensor& x, double by, Tensor& out) {
  return combine(context, x, static_cast<float>(by), nullptr, out);
}

Error pair_out(Context& context, const Tensor& x, IntList factors, Tensor& first, Tensor& second) {
  ETX_CHECK(context, factors.size() == 2, InvalidArgument, "expected two factors");
  ETX_TRY(combine(context, x, static_cast<float>(factors[0]), nullptr, first));
  return combine(context, x, static_cast<float>(factors[1]), nullptr, second);
}

Error scaled_add_out(Context& context, const Tensor& x, const Tensor& y, double scale,
                     Tensor& out) {
  return combine(context, y, static_cast<float>(scale), &x, out);
}

Error accumulate(Context& context, Tensor& sum, const Tensor& x) {
  return combine(context, x, 1, &sum, sum);
}

Error step_out(Context& context, Tensor& sum, const Tensor& x, Tensor& out) {
  ETX_TRY(accumulate(context, sum, x));
  return combine(context, sum, 10, nullptr, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx_custom::twice.out", twice_out),
    ETX_KERNEL("etx_custom::pair.out", pair_out),
    ETX_KERNEL("etx_custom::scaled_add.out", scaled_add_out),
    ETX_KERNEL("etx_custom::accumulate", accumulate),
    ETX_KERNEL("etx_custom::step.out", step_out),
    ETX_KERNEL("etx_cpp::doubled.out", doubled_out),
};
ETX_KERNEL_TABLE(kKernels, kRows);
constexpr const etx_kernel_table* kTables[] = {&kKernels};
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
constexpr Span<const etx_backend* const> kNoBackends;

}  // namespace
}  // namespace etx

ETX_PLUGIN(custom, "etx-test-custom", "1.0", etx::kTableSpan, etx::kNoBackends)
