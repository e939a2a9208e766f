// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <new>

#include <etx/plugin.h>

#include "delegate.h"

namespace etx::xnnpack {
namespace {

void destroy(const etx_backend*, void* handle) {
  auto* delegate = static_cast<Delegate*>(handle);
  delegate->~Delegate();
  std::free(delegate);
}

Error load(etx_init_context* context, const void* blob, size_t size, const etx_compile_spec* specs,
           size_t num_specs, void** handle) {
  Options options;
  ETX_TRY(read_options(*context, specs, num_specs, &options));
  void* memory = std::malloc(sizeof(Delegate));
  if (memory == nullptr) return fail(Error::MemoryAllocationFailed, "no memory");
  auto* delegate = ::new (memory) Delegate();
  const Error error = delegate->load(context, blob, size, options);
  if (error == Error::Ok) {
    *handle = delegate;
  } else {
    destroy(nullptr, delegate);
  }
  return error;
}

etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec* specs, size_t num_specs, void** handle) {
  const Error error = load(context, blob, size, specs, num_specs, handle);
  if (error == Error::Ok) return 0;
  return context->fail(context, static_cast<etx_status>(error), last_reason());
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  const Error error = static_cast<Delegate*>(handle)->execute(context, args, num_args);
  if (error == Error::Ok) return 0;
  return context->fail(context, static_cast<etx_status>(error), last_reason());
}

constexpr etx_backend kBackend = {
    sizeof(etx_backend), "XnnpackBackend", nullptr, nullptr, init, execute, destroy};
constexpr const etx_backend* kBackends[] = {&kBackend};
constexpr Span<const etx_backend* const> kBackendSpan(kBackends);
constexpr Span<const etx_kernel_table* const> kNoTables;

}  // namespace
}  // namespace etx::xnnpack

ETX_PLUGIN(backend_xnnpack, "etx-backend-xnnpack",
           ETX_BACKEND_VERSION " (XNNPACK " ETX_XNNPACK_DATE " " ETX_XNNPACK_COMMIT ")",
           etx::xnnpack::kNoTables, etx::xnnpack::kBackendSpan)
