// SPDX-License-Identifier: BSD-3-Clause
#include <etx/plugin.h>
#include <etx/span.h>

#include "cortex_m/families.h"

namespace etx::cortex_m {
namespace {
#if defined(ETX_CORTEX_M_NONE)
constexpr Span<const etx_kernel_table* const> kTableSpan;
#else
#define ETX_FAMILY(name) &name##_kernels,
constexpr const etx_kernel_table* kTables[] = {ETX_FAMILIES(ETX_FAMILY)};
#undef ETX_FAMILY
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
#endif
}  // namespace
}  // namespace etx::cortex_m

#if defined(ETX_ARM_NPU)
#include "ethos_u/backend.h"

namespace etx::npu {
namespace {
constexpr const etx_backend* kBackends[] = {&kBackend};
constexpr Span<const etx_backend* const> kBackendSpan(kBackends);
}  // namespace
}  // namespace etx::npu
#else
namespace etx::npu {
namespace {
constexpr Span<const etx_backend* const> kBackendSpan;
}  // namespace
}  // namespace etx::npu
#endif

ETX_PLUGIN(backend_arm, "etx-backend-arm", ETX_BACKEND_VERSION, etx::cortex_m::kTableSpan,
           etx::npu::kBackendSpan)
