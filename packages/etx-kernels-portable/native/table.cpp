// SPDX-License-Identifier: BSD-3-Clause
#include <etx/plugin.h>

#include "families.h"

namespace etx::portable {
namespace {
#define ETX_FAMILY(name) &name##_kernels,
constexpr const etx_kernel_table* kTables[] = {ETX_FAMILIES(ETX_FAMILY)};
#undef ETX_FAMILY
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
constexpr Span<const etx_backend* const> kNoBackends;
}  // namespace
}  // namespace etx::portable

ETX_PLUGIN(etx_kernels_portable, "etx-kernels-portable", ETX_KERNELS_VERSION,
           etx::portable::kTableSpan, etx::portable::kNoBackends)
