// SPDX-License-Identifier: BSD-3-Clause
/// The hook of tests: the commands run on `Machine`.
#include <cstring>
#include <new>

#include "ethos_u/hook.h"
#include "npu/machine.h"
#include "npu/stream.h"

namespace etx::npu {
namespace {

constexpr char kNoMemory[] = "not enough memory for the simulated NPU";

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

/// What a blob's runs need beside its scratch memory.
struct Simulator {
  Stream stream;
  Memory memory;
  Workspace workspace;
  size_t known_bytes = 0;
  char reason[160] = "";
  alignas(Machine) unsigned char place[sizeof(Machine)];

  /// A machine in its first state; its registers are too many for a small stack.
  Machine& machine() { return *::new (place) Machine(stream.data, stream.words, stream.macs); }

  void explain(const char* before, size_t offset, const char* after, const char** said) {
    Text to(reason, sizeof(reason));
    to.add(before);
    to.add_hex(offset);
    to.add(": ");
    to.add(after);
    *said = reason;
  }
};

#if defined(ETX_NPU_MEMORY)
/// What is inside of an NPU is not the firmware's memory.
alignas(16) __attribute__((section(".npu"))) uint8_t memory_of_npu[ETX_NPU_MEMORY];
size_t used_of_npu = 0;

void* get(etx_init_context*, size_t size) {
  const size_t rounded = (size + 15) / 16 * 16;
  if (rounded > sizeof(memory_of_npu) - used_of_npu) return nullptr;
  used_of_npu += rounded;
  return memory_of_npu + (used_of_npu - rounded);
}
#else
void* get(etx_init_context* context, size_t size) {
  return context->allocate(context, size > 0 ? size : 1, 16);
}
#endif

bool allocate(etx_init_context* context, const Needs& needs, Simulator* simulator) {
  Region& scratch = simulator->memory.region(kScratch);
  scratch.known = static_cast<uint8_t*>(get(context, simulator->known_bytes));
  Workspace& workspace = simulator->workspace;
  workspace.weights = static_cast<int16_t*>(get(context, needs.weights * sizeof(int16_t)));
  workspace.patch = static_cast<int32_t*>(get(context, needs.patch * sizeof(int32_t)));
  workspace.pixel = static_cast<int32_t*>(get(context, needs.depth * sizeof(int32_t)));
  if (scratch.known == nullptr || workspace.weights == nullptr || workspace.patch == nullptr ||
      workspace.pixel == nullptr) {
    return false;
  }
  if (!needs.tables) return true;
  Region& tables = simulator->memory.region(Memory::kTables);
  tables.data = static_cast<uint8_t*>(get(context, Memory::kTableBytes));
  tables.known = static_cast<uint8_t*>(get(context, Memory::kTableBytes / 8));
  tables.size = Memory::kTableBytes;
  return tables.data != nullptr && tables.known != nullptr;
}

void forget(Memory& memory, size_t known_bytes) {
  std::memset(memory.region(kScratch).known, 0, known_bytes);
  const Region& tables = memory.region(Memory::kTables);
  if (tables.known != nullptr) std::memset(tables.known, 0, Memory::kTableBytes / 8);
}

bool is_cancelled(const void* user) {
  const auto* of = static_cast<const etx_context*>(user);
  return of->is_cancelled != nullptr && of->is_cancelled(of);
}

}  // namespace

Error prepare(etx_init_context* context, const Blob& blob, void** state, const char** reason) {
  void* memory = get(context, sizeof(Simulator));
  if (memory == nullptr) {
    *reason = kNoMemory;
    return Error::MemoryAllocationFailed;
  }
  auto* simulator = ::new (memory) Simulator();
  *state = simulator;
  if (const Fault fault = Stream::read(blob.commands, &simulator->stream)) {
    *reason = fault;
    return Error::DelegateInvalidCompatibility;
  }
  Needs needs;
  Machine& machine = simulator->machine();
  if (const Fault fault = machine.measure(&needs)) {
    simulator->explain("command at offset ", machine.offset(), fault, reason);
    return Error::NotSupported;
  }
  simulator->known_bytes = blob.scratch_size / 8 + 1;
  if (allocate(context, needs, simulator)) return Error::Ok;
  *reason = kNoMemory;
  return Error::MemoryAllocationFailed;
}

Error invoke(void* state, const Run& run, const char** reason) {
  auto& simulator = *static_cast<Simulator*>(state);
  Memory& memory = simulator.memory;
  const Blob& blob = *run.blob;
  Region& scratch = memory.region(kScratch);
  scratch = {run.regions.base[kScratch], run.regions.size[kScratch], scratch.known, false};
  memory.region(kFastScratch) = scratch;
  memory.region(kWeights) = {run.regions.base[kWeights], run.regions.size[kWeights], nullptr, true};
  forget(memory, simulator.known_bytes);
  for (size_t i = 0; i < Blob::count(blob.inputs); ++i) {
    const Port port = Blob::port(blob.inputs, i);
    scratch.mark(port.offset, static_cast<size_t>(port.bytes), true);
  }
  Machine& machine = simulator.machine();
  const Cancel cancel = {is_cancelled, run.context};
  if (const Fault fault = machine.run(&memory, simulator.workspace, cancel)) {
    simulator.explain("command at offset ", machine.offset(), fault, reason);
    return fault == kCancelled ? Error::Cancelled : Error::InvalidProgram;
  }
  for (size_t i = 0; i < Blob::count(blob.outputs); ++i) {
    const Port port = Blob::port(blob.outputs, i);
    const auto count = static_cast<size_t>(port.bytes);
    const uint8_t* source = nullptr;
    if (const Fault fault = memory.read(port.region, port.offset, count, &source)) {
      simulator.explain("output at offset ", port.offset, fault, reason);
      return Error::InvalidProgram;
    }
  }
  return Error::Ok;
}

}  // namespace etx::npu
