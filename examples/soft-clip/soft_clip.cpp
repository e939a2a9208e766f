// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <etx/kernel.h>
#include <etx/plugin.h>

namespace demo {
using namespace etx;

/// soft_clip(x) = limit * tanh(x / limit).
Error soft_clip_out(Context& context, const Tensor& x, double limit, Tensor& out) {
  ETX_CHECK(context, x.scalar_type() == ScalarType::Float, NotSupported, "x must be float32");
  ETX_TRY(out.resize(x.sizes()));
  const float bound = static_cast<float>(limit);
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = bound * std::tanh(from[i] / bound);
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_KERNEL("demo::soft_clip.out", soft_clip_out)};
ETX_KERNEL_TABLE(kernels, kRows);
constexpr const etx_kernel_table* kTables[] = {&kernels};
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
constexpr Span<const etx_backend* const> kNoBackends;
}  // namespace demo

ETX_PLUGIN(demo, "soft-clip", "0.1.0", demo::kTableSpan, demo::kNoBackends)
