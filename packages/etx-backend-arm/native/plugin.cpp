// SPDX-License-Identifier: BSD-3-Clause
#include <new>

#include <etx/plugin.h>
#include <etx/span.h>

#include "cortex_m/families.h"

namespace etx::cortex_m {
namespace {
#define ETX_FAMILY(name) &name##_kernels,
constexpr const etx_kernel_table* kTables[] = {ETX_FAMILIES(ETX_FAMILY)};
#undef ETX_FAMILY
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
}  // namespace
}  // namespace etx::cortex_m

#if defined(ETX_ARM_NPU)
#include "npu/delegate.h"

namespace etx::npu {
namespace {

etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec*, size_t, void** handle) {
  void* memory = context->allocate(context, sizeof(Delegate), alignof(Delegate));
  if (memory == nullptr) {
    return context->fail(context, static_cast<etx_status>(Error::MemoryAllocationFailed),
                         "not enough memory for the NPU's state");
  }
  auto* delegate = ::new (memory) Delegate();
  *handle = delegate;
  const Error error = delegate->load(context, blob, size);
  if (error == Error::Ok) return 0;
  return context->fail(context, static_cast<etx_status>(error), delegate->reason());
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  auto* delegate = static_cast<Delegate*>(handle);
  const Error error = delegate->execute(context, args, num_args);
  if (error == Error::Ok) return 0;
  return context->fail(context, static_cast<etx_status>(error), delegate->reason());
}

constexpr etx_backend kBackend = {
    sizeof(etx_backend), "EthosUBackend", nullptr, nullptr, init, execute, nullptr};
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
