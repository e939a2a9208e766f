// SPDX-License-Identifier: BSD-3-Clause
#include "ethos_u/backend.h"

#include <cstring>
#include <new>

#include <etx/tensor.h>

#include "ethos_u/hook.h"

namespace etx::npu {
namespace {

constexpr size_t kAlignment = 16, kLongestKey = 127;

/// A loaded blob; of one size on targets of 32 bits (BYTES of firmware/memory.py).
struct alignas(8) Delegate {
  Blob blob;
  const void* weights = nullptr;
  size_t weight_bytes = 0;
  void* state = nullptr;
};

template <typename Context>
etx_status fail(Context* context, Error error, const char* reason) {
  return context->fail(context, static_cast<etx_status>(error), reason);
}

/// Returns why a port is not in the scratch memory.
Fault check_ports(const Blob& blob, const Bytes& ports) {
  for (size_t i = 0; i < Blob::count(ports); ++i) {
    const Port port = Blob::port(ports, i);
    if (port.region != kScratch && port.region != kFastScratch) {
      return "an input or output lies in another region than the scratch memory";
    }
    if (port.bytes > blob.scratch_size || port.offset > blob.scratch_size - port.bytes) {
      return "an input or output lies behind the end of the scratch memory";
    }
  }
  return nullptr;
}

etx_status init(const etx_backend*, etx_init_context* context, const void* data, size_t size,
                const etx_compile_spec*, size_t, void** handle) {
  void* memory = context->allocate(context, sizeof(Delegate), alignof(Delegate));
  if (memory == nullptr) {
    return fail(context, Error::MemoryAllocationFailed, "not enough memory for the NPU's state");
  }
  auto* delegate = ::new (memory) Delegate();
  *handle = delegate;
  Blob& blob = delegate->blob;
  Fault fault = Blob::read(data, size, &blob);
  if (fault == nullptr) fault = check_ports(blob, blob.inputs);
  if (fault == nullptr) fault = check_ports(blob, blob.outputs);
  if (fault != nullptr) return fail(context, Error::InvalidProgram, fault);
  delegate->weights = blob.weights.data;
  delegate->weight_bytes = blob.weights.size;
  if (blob.weights_are_named) {
    char key[kLongestKey + 1] = {};
    if (blob.weights.size > kLongestKey) {
      return fail(context, Error::InvalidProgram, "the key of its weights is long");
    }
    std::memcpy(key, blob.weights.data, blob.weights.size);
    if (context->named_data(context, key, &delegate->weights, &delegate->weight_bytes) != 0) {
      return fail(context, Error::NotFound, "its weights are not in the program's named data");
    }
  }
  const char* reason = "the NPU refuses it";
  const Error error = prepare(context, blob, &delegate->state, &reason);
  return error == Error::Ok ? 0 : fail(context, error, reason);
}

/// Copies inputs to the scratch memory, or outputs from it, but what lies there already.
Error copy(const Bytes& ports, etx_value* const* args, uint8_t* scratch, bool is_input,
           const char** reason) {
  for (size_t i = 0; i < Blob::count(ports); ++i) {
    const Port port = Blob::port(ports, i);
    if (args[i]->tag != ETX_TAG_TENSOR) {
      *reason = "it takes only tensors";
      return Error::InvalidType;
    }
    const Tensor tensor(args[i]->payload.as_tensor);
    if (tensor.nbytes() != port.bytes || tensor.element_size() != port.element_size) {
      *reason = "a tensor of another size than the blob says";
      return Error::InvalidArgument;
    }
    if (!is_input && tensor.is_constant()) {
      *reason = "an output is constant";
      return Error::InvalidArgument;
    }
    void* of_tensor = args[i]->payload.as_tensor->data;
    void* of_npu = scratch + port.offset;
    if (of_tensor == of_npu) continue;
    std::memcpy(is_input ? of_npu : of_tensor, is_input ? of_tensor : of_npu, tensor.nbytes());
  }
  return Error::Ok;
}

etx_status execute(const etx_backend*, void* handle, etx_context* context, etx_value* const* args,
                   size_t num_args) {
  const auto& delegate = *static_cast<const Delegate*>(handle);
  const Blob& blob = delegate.blob;
  const size_t inputs = Blob::count(blob.inputs);
  const char* reason = "the NPU failed";
  if (num_args != inputs + Blob::count(blob.outputs)) {
    return fail(context, Error::InvalidArgument,
                "another number of inputs and outputs than the blob has");
  }
  const size_t size = blob.scratch_size;
  auto* scratch = static_cast<uint8_t*>(
      context->allocate_temp(context, size > 0 ? size : kAlignment, kAlignment));
  if (scratch == nullptr) {
    return fail(context, Error::MemoryAllocationFailed,
                "not enough temporary memory for the NPU's scratch");
  }
  Error error = copy(blob.inputs, args, scratch, true, &reason);
  if (error != Error::Ok) return fail(context, error, reason);
  // Region 0 is only read.
  auto* weights = static_cast<uint8_t*>(const_cast<void*>(delegate.weights));
  const Run run = {
      &blob, {{weights, scratch, scratch}, {delegate.weight_bytes, size, size}}, context};
  error = invoke(delegate.state, run, &reason);
  if (error == Error::Ok) error = copy(blob.outputs, args + inputs, scratch, false, &reason);
  return error == Error::Ok ? 0 : fail(context, error, reason);
}

}  // namespace

const etx_backend kBackend = {
    sizeof(etx_backend), "EthosUBackend", nullptr, nullptr, init, execute, nullptr};

}  // namespace etx::npu
