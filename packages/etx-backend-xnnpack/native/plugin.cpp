// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <cstring>
#include <new>

#include <etx/plugin.h>

#include "delegate.h"

namespace etx::xnnpack {
namespace {

bool is_word(const void* text, size_t size, const char* word) {
  return size == std::strlen(word) && std::memcmp(text, word, size) == 0;
}

Error read_sharing(const void* text, size_t size, Sharing* sharing) {
  if (is_word(text, size, "delegate")) {
    *sharing = Sharing::Delegate;
  } else if (is_word(text, size, "method")) {
    *sharing = Sharing::Method;
  } else if (is_word(text, size, "process")) {
    *sharing = Sharing::Process;
  } else {
    return fail(Error::InvalidArgument,
                "workspace is '%.*s', expected 'delegate', 'method' or 'process'",
                static_cast<int>(size < 40 ? size : 40), static_cast<const char*>(text));
  }
  return Error::Ok;
}

/// The compile spec `workspace`, before it the environment's ETX_XNNPACK_WORKSPACE.
Error find_sharing(const etx_compile_spec* specs, size_t num_specs, Sharing* sharing) {
  *sharing = Sharing::Method;
  const char* given = std::getenv("ETX_XNNPACK_WORKSPACE");
  if (given != nullptr && *given != '\0') return read_sharing(given, std::strlen(given), sharing);
  for (size_t i = 0; i < num_specs; ++i) {
    if (std::strcmp(specs[i].key, "workspace") == 0) {
      return read_sharing(specs[i].value, specs[i].size, sharing);
    }
  }
  return Error::Ok;
}

void destroy(const etx_backend*, void* handle) {
  auto* delegate = static_cast<Delegate*>(handle);
  delegate->~Delegate();
  std::free(delegate);
}

Error load(etx_init_context* context, const void* blob, size_t size, const etx_compile_spec* specs,
           size_t num_specs, void** handle) {
  Sharing sharing;
  ETX_TRY(find_sharing(specs, num_specs, &sharing));
  void* memory = std::malloc(sizeof(Delegate));
  if (memory == nullptr) return fail(Error::MemoryAllocationFailed, "no memory");
  auto* delegate = ::new (memory) Delegate();
  const Error error = delegate->load(context, blob, size, sharing);
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
