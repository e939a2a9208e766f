// SPDX-License-Identifier: BSD-3-Clause
#include "delegate.h"

#include <cstring>

#include <etx/tensor.h>

namespace etx::npu {
namespace {

constexpr uint32_t kWeights = 0, kScratch = 1, kFastScratch = 2;
constexpr size_t kAlignment = 16, kLongestKey = 127;

/// Appends a text, and of numbers the digits to a base, as far as there is room.
class Text {
 public:
  Text(char* to, size_t size) : at_(to), end_(to + size - 1) {}
  ~Text() { *at_ = '\0'; }
  void add(const char* text) {
    while (*text != '\0' && at_ < end_) *at_++ = *text++;
  }
  void add_hex(size_t value) {
    char digits[2 * sizeof(size_t) + 1];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
      digits[--at] = "0123456789abcdef"[value & 15];
      value >>= 4;
    } while (value > 0);
    add("0x");
    add(digits + at);
  }

 private:
  char* at_;
  char* end_;
};

}  // namespace

Error Delegate::refuse(Error error, const char* text) {
  Text(reason_, sizeof(reason_)).add(text);
  return error;
}

Error Delegate::refuse(Error error, const char* before, Fault fault, size_t offset) {
  Text text(reason_, sizeof(reason_));
  text.add(before);
  text.add_hex(offset);
  text.add(": ");
  text.add(fault);
  return error;
}

Error Delegate::load(etx_init_context* context, const void* blob, size_t size) {
  if (const Fault fault = Blob::read(blob, size, &blob_)) {
    return refuse(Error::InvalidProgram, fault);
  }
  if (const Fault fault = Stream::read(blob_.commands, &stream_)) {
    return refuse(Error::DelegateInvalidCompatibility, fault);
  }
  Needs needs;
  Machine machine(stream_.data, stream_.words, stream_.macs);
  if (const Fault fault = machine.measure(&needs)) {
    return refuse(Error::NotSupported, "command at offset ", fault, machine.offset());
  }
  ETX_TRY(load_weights(context));
  return allocate(context, needs);
}

Error Delegate::load_weights(etx_init_context* context) {
  const void* data = blob_.weights.data;
  size_t size = blob_.weights.size;
  if (blob_.weights_are_named) {
    char key[kLongestKey + 1] = {};
    if (size > kLongestKey) return refuse(Error::InvalidProgram, "the key of its weights is long");
    std::memcpy(key, data, size);
    if (context->named_data(context, key, &data, &size) != 0) {
      return refuse(Error::NotFound, "its weights are not in the program's named data");
    }
  }
  Region& region = memory_.region(kWeights);
  // Region 0 is only read: Memory::write refuses constant regions.
  region.data = static_cast<uint8_t*>(const_cast<void*>(data));
  region.size = size;
  region.is_constant = true;
  return Error::Ok;
}

Error Delegate::allocate(etx_init_context* context, const Needs& needs) {
  const auto get = [context](size_t size) {
    return context->allocate(context, size > 0 ? size : 1, kAlignment);
  };
  known_bytes_ = blob_.scratch_size / 8 + 1;
  Region& scratch = memory_.region(kScratch);
  scratch.data = static_cast<uint8_t*>(get(blob_.scratch_size));
  scratch.size = blob_.scratch_size;
  scratch.known = static_cast<uint8_t*>(get(known_bytes_));
  workspace_.weights = static_cast<int16_t*>(get(needs.weights * sizeof(int16_t)));
  workspace_.patch = static_cast<int32_t*>(get(needs.patch * sizeof(int32_t)));
  workspace_.pixel = static_cast<int32_t*>(get(needs.depth * sizeof(int32_t)));
  if (scratch.data == nullptr || scratch.known == nullptr || workspace_.weights == nullptr ||
      workspace_.patch == nullptr || workspace_.pixel == nullptr) {
    return refuse(Error::MemoryAllocationFailed, "not enough memory for the NPU's scratch");
  }
  memory_.region(kFastScratch) = scratch;
  if (!needs.tables) return Error::Ok;
  Region& tables = memory_.region(Memory::kTables);
  tables.data = static_cast<uint8_t*>(get(Memory::kTableBytes));
  tables.known = static_cast<uint8_t*>(get(Memory::kTableBytes / 8));
  tables.size = Memory::kTableBytes;
  if (tables.data == nullptr || tables.known == nullptr) {
    return refuse(Error::MemoryAllocationFailed, "not enough memory for the NPU's tables");
  }
  return Error::Ok;
}

Error Delegate::execute(etx_context* context, etx_value* const* args, size_t num_args) {
  const size_t inputs = Blob::count(blob_.inputs), outputs = Blob::count(blob_.outputs);
  if (num_args != inputs + outputs) {
    return refuse(Error::InvalidArgument, "another number of inputs and outputs than the blob has");
  }
  std::memset(memory_.region(kScratch).known, 0, known_bytes_);
  const Region& tables = memory_.region(Memory::kTables);
  if (tables.known != nullptr) std::memset(tables.known, 0, Memory::kTableBytes / 8);
  for (size_t i = 0; i < num_args; ++i) {
    const bool is_input = i < inputs;
    const Port port =
        Blob::port(is_input ? blob_.inputs : blob_.outputs, is_input ? i : i - inputs);
    if (args[i]->tag != ETX_TAG_TENSOR) return refuse(Error::InvalidType, "it takes only tensors");
    const Tensor tensor(args[i]->payload.as_tensor);
    if (tensor.nbytes() != port.bytes || tensor.element_size() != port.element_size) {
      return refuse(Error::InvalidArgument, "a tensor of another size than the blob says");
    }
    if (!is_input) continue;
    uint8_t* target = nullptr;
    if (memory_.write(port.region, port.offset, tensor.nbytes(), &target) != nullptr) {
      return refuse(Error::InvalidProgram, "an input lies outside of its region");
    }
    std::memcpy(target, args[i]->payload.as_tensor->data, tensor.nbytes());
  }
  Machine machine(stream_.data, stream_.words, stream_.macs);
  const auto is_cancelled = [](const void* user) {
    const auto* of = static_cast<const etx_context*>(user);
    return of->is_cancelled != nullptr && of->is_cancelled(of);
  };
  if (const Fault fault = machine.run(&memory_, workspace_, {is_cancelled, context})) {
    if (fault == kCancelled) return refuse(Error::Cancelled, fault);
    return refuse(Error::InvalidProgram, "command at offset ", fault, machine.offset());
  }
  for (size_t i = 0; i < outputs; ++i) {
    const Port port = Blob::port(blob_.outputs, i);
    const uint8_t* source = nullptr;
    const auto count = static_cast<size_t>(port.bytes);
    if (const Fault fault = memory_.read(port.region, port.offset, count, &source)) {
      return refuse(Error::InvalidProgram, "output at offset ", fault, port.offset);
    }
    std::memcpy(args[inputs + i]->payload.as_tensor->data, source, count);
  }
  return Error::Ok;
}

}  // namespace etx::npu
