// SPDX-License-Identifier: BSD-3-Clause
// A backend whose init and execute both use the runtime's threads.
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include <etx/kernel.h>
#include <etx/plugin.h>

namespace etx {
namespace {

constexpr int64_t kCopies = 512;

/// Threads that race for it are what a sanitizer is to find.
int64_t unguarded = 0;
std::atomic<int64_t> handles{0};

struct Handle {
  float scale;
  float bias[kCopies];
  bool is_racy;
};

etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec*, size_t num_specs, void** handle) {
  if (size != sizeof(float)) return context->fail(context, 0x30, "the blob is not a number");
  const void* stored = nullptr;
  const etx_status status = context->named_data(context, "bias", &stored, &size);
  if (status != 0 || size != sizeof(float)) return context->fail(context, 0x30, "no bias");
  void* memory = context->allocate(context, sizeof(Handle), alignof(Handle));
  if (memory == nullptr) return 0x31;
  auto* made = ::new (memory) Handle;
  std::memcpy(&made->scale, blob, sizeof(float));
  made->is_racy = num_specs != 0;
  struct Work {
    float* target;
    const void* stored;
  } work{made->bias, stored};
  const auto copy = [](void* user, int64_t begin, int64_t end) {
    for (const Work& w = *static_cast<Work*>(user); begin < end; ++begin) {
      std::memcpy(w.target + begin, w.stored, sizeof(float));
    }
  };
  if (context->parallel_for == nullptr || context->num_threads < 1) return 0x30;
  context->parallel_for(context, 0, kCopies, 8, copy, &work);
  *handle = made;
  ++handles;
  return 0;
}

etx_status execute(const etx_backend*, void* opaque, etx_context* raw, etx_value* const* args,
                   size_t num_args) {
  Context context(raw);
  const Handle& handle = *static_cast<const Handle*>(opaque);
  if (num_args != 2 || !args[0] || args[0]->tag != ETX_TAG_TENSOR) return 0x12;
  const Tensor in = static_cast<EValue*>(args[0])->to_tensor();
  const Tensor out = static_cast<EValue*>(args[1])->to_tensor();
  const float* x = in.const_data_ptr<float>();
  float* y = out.mutable_data_ptr<float>();
  context.parallel_for(0, out.numel(), 100, [&](int64_t begin, int64_t end) {
    context.parallel_for(begin, end, 10, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) y[i] = x[i] * handle.scale + handle.bias[i % kCopies];
    });
    if (!handle.is_racy) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ++unguarded;
  });
  return context.is_cancelled() ? static_cast<etx_status>(Error::Cancelled) : 0;
}

void destroy(const etx_backend*, void*) { --handles; }

constexpr etx_backend kBackend = {
    sizeof(etx_backend), "PoolScale", nullptr, nullptr, init, execute, destroy};
constexpr const etx_backend* kBackends[] = {&kBackend};

}  // namespace

ETX_PLUGIN(stress, "etx-stress-backend", "1", (Span<const etx_kernel_table* const>()),
           (Span<const etx_backend* const>(kBackends)))

}  // namespace etx
