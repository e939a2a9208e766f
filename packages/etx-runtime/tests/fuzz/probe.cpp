// SPDX-License-Identifier: BSD-3-Clause
// A backend that reads every byte it is given, and writes every byte it may.
#include <cstring>
#include <new>

#include <etx/value.h>

#include "run.h"

extern "C" const etx_plugin* ETX_FUZZ_PLUGIN(void);

namespace etx::fuzz {
namespace {

struct Handle {
  uint64_t sum;
};

uint64_t sum(const void* data, size_t size) {
  uint64_t total = 0;
  for (size_t i = 0; i < size; ++i) total += static_cast<const uint8_t*>(data)[i];
  return total;
}

etx_status init(const etx_backend*, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec* specs, size_t num_specs, void** handle) {
  uint64_t total = sum(blob, size) + std::strlen(context->method);
  for (size_t i = 0; i < num_specs; ++i) {
    total += sum(specs[i].value, specs[i].size);
    const void* data = nullptr;
    size_t length = 0;
    if (context->named_data(context, specs[i].key, &data, &length) == 0) total += sum(data, length);
  }
  void* memory = context->allocate(context, sizeof(Handle), alignof(Handle));
  if (memory == nullptr) return context->fail(context, 0x31, "no memory for the handle");
  *handle = ::new (memory) Handle{total};
  return 0;
}

uint64_t read(const etx_value& raw) {
  const EValue& value = static_cast<const EValue&>(raw);
  uint64_t total = value.count;
  switch (value.tag()) {
    case Tag::Tensor: {
      const Tensor tensor = value.to_tensor();
      for (ssize_t d = 0; d < tensor.dim(); ++d) {
        total += static_cast<uint64_t>(tensor.size(d) + tensor.stride(d));
      }
      return total + sum(tensor.const_data_ptr(), tensor.nbytes());
    }
    case Tag::String: return total + sum(value.payload.as_string, value.count);
    case Tag::ListInt: return total + sum(value.to_int_list().data(), value.count * 8u);
    case Tag::ListDouble: return total + sum(value.payload.as_double_list, value.count * 8u);
    case Tag::ListBool: return total + sum(value.payload.as_bool_list, value.count);
    case Tag::ListTensor:
    case Tag::ListOptionalTensor:
      for (uint32_t i = 0; i < value.count; ++i) {
        const etx_value* item = value.payload.as_tensor_list[i];
        if (item != nullptr) total += read(*item);
      }
      return total;
    default: return total;
  }
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  uint64_t total = static_cast<Handle*>(handle)->sum;
  for (size_t i = 0; i < num_args; ++i) total += read(*args[i]);
  if (num_args == 0 || args[num_args - 1]->tag != ETX_TAG_TENSOR) return 0;
  const etx_tensor& out = *args[num_args - 1]->payload.as_tensor;
  if ((out.flags & ETX_TENSOR_CONSTANT) != 0) {
    return context->fail(context, 0x12, "the output is constant");
  }
  const size_t size = Tensor(args[num_args - 1]->payload.as_tensor).nbytes();
  if (size != 0) std::memset(out.data, static_cast<int>(total & 1), size);
  return 0;
}

constexpr etx_backend kProbe = {
    sizeof(etx_backend), "Probe", nullptr, nullptr, init, execute, nullptr};
constexpr const etx_backend* kBackends[] = {&kProbe};
constexpr etx_plugin kPlugin = {
    sizeof(etx_plugin), ETX_ABI_MAJOR, ETX_ABI_MINOR, "probe", "0", nullptr, 0, kBackends, 1};

}  // namespace

Span<const etx_plugin* const> plugins() {
  static const etx_plugin* const all[] = {ETX_FUZZ_PLUGIN(), &kPlugin};
  return all;
}

}  // namespace etx::fuzz
