// SPDX-License-Identifier: BSD-3-Clause
#include "code.h"

#include <cstring>
#include <new>

#include <etx/error.h>

namespace pointwise {
namespace {

constexpr char kMagic[4] = {'P', 'W', '0', '1'};
constexpr size_t kHeaderSize = 4 + 7 * 2;

etx_status refuse(etx_init_context* context, const char* reason) {
  return context->fail(context, static_cast<etx_status>(etx::Error::DelegateInvalidCompatibility),
                       reason);
}

bool is_binary(Op op) { return op >= Op::Add; }
bool reads_registers(Op op) { return op >= Op::Store; }
bool is_kept(Op op) { return op == Op::Splat || op == Op::Constant; }

/// How many things the first source of an instruction may name.
size_t sources(const Code& code, Op op) {
  switch (op) {
    case Op::Load:
    case Op::Splat: return code.inputs;
    case Op::Constant: return code.constants;
    case Op::Tensor: return code.tensors;
    default: return code.registers;
  }
}

/// Which registers hold something, which of them must stay, and which outputs are stored.
struct Seen {
  bool written[kMost + 1] = {};
  bool kept[kMost + 1] = {};
  bool stored[kMost + 1] = {};
  bool loaded[kMost + 1] = {};
  bool single[kMost + 1] = {};
};

/// Returns why an instruction cannot run, or null; notes what it does.
const char* check(const Code& code, const Instruction& row, Seen& seen) {
  if (row.op >= Op::Count) return "the blob holds an operation that this version does not know";
  if (row.a >= sources(code, row.op)) return "an instruction's source is out of range";
  if (is_binary(row.op) && row.b >= code.registers)
    return "an instruction's source is out of range";
  if (row.target >= (row.op == Op::Store ? code.outputs : code.registers)) {
    return "an instruction's destination is out of range";
  }
  if (reads_registers(row.op) && !seen.written[row.a]) return "a register is read before it is set";
  if (is_binary(row.op) && !seen.written[row.b]) return "a register is read before it is set";
  if (row.op == Op::Store) {
    if (seen.stored[row.target]) return "an output is stored twice";
    seen.stored[row.target] = true;
    return nullptr;
  }
  const bool in_place = row.target == row.a || (is_binary(row.op) && row.target == row.b);
  if (reads_registers(row.op) && in_place) return "an instruction writes what it reads";
  if (seen.kept[row.target] || (is_kept(row.op) && seen.written[row.target])) {
    return "the register of a constant is written twice";
  }
  if (row.op == Op::Load) seen.loaded[row.a] = true;
  if (row.op == Op::Splat) seen.single[row.a] = true;
  seen.written[row.target] = true;
  seen.kept[row.target] = is_kept(row.op);
  return nullptr;
}

const char* check(const Code& code) {
  Seen seen;
  for (size_t i = 0; i < code.instructions; ++i) {
    const char* reason = check(code, code.code[i], seen);
    if (reason != nullptr) return reason;
  }
  for (size_t i = 0; i < code.outputs; ++i) {
    if (!seen.stored[i]) return "an output is never stored";
  }
  for (size_t i = 0; i < code.inputs; ++i) {
    if (seen.loaded[i] && seen.single[i]) return "an input is both whole and a single number";
  }
  if (seen.single[code.shape_of]) return "the input that gives the shape is a single number";
  return nullptr;
}

etx_status find_tensors(etx_init_context* context, const char* names, const Code& code,
                        Named* found) {
  for (size_t i = 0; i < code.tensors; ++i) {
    char name[kNameSize + 1] = {};
    std::memcpy(name, names + i * kNameSize, kNameSize);
    const void* data = nullptr;
    size_t size = 0;
    const etx_status status = context->named_data(context, name, &data, &size);
    if (status != 0) return context->fail(context, status, "a tensor is not among the named data");
    if (size % sizeof(float) != 0 || reinterpret_cast<uintptr_t>(data) % alignof(float) != 0) {
      return refuse(context, "a tensor's data are not aligned floats");
    }
    found[i] = {static_cast<const float*>(data), static_cast<int64_t>(size / sizeof(float))};
  }
  return 0;
}

}  // namespace

float Code::constant(size_t index) const {
  float value;
  std::memcpy(&value, values + index * sizeof(float), sizeof(float));
  return value;
}

etx_status parse(etx_init_context* context, const void* blob, size_t size, int64_t block,
                 Code** result) {
  const auto* bytes = static_cast<const unsigned char*>(blob);
  if (size < kHeaderSize || std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) {
    return refuse(context, "the blob is not a PW01 chain; lower the model again");
  }
  uint16_t head[7];
  std::memcpy(head, bytes + sizeof(kMagic), sizeof(head));
  Code code{head[0], head[1], head[2], head[3], head[4], head[5],
            head[6], block,   nullptr, nullptr, nullptr};
  for (size_t i = 0; i < 5; ++i) {
    if (head[i] > kMost) return refuse(context, "a count in the blob's header is too large");
  }
  if (code.shape_of >= code.inputs) return refuse(context, "the blob names no input for the shape");
  const size_t names = kHeaderSize + code.constants * sizeof(float);
  const size_t rows = names + code.tensors * kNameSize;
  if (size != rows + code.instructions * sizeof(Instruction)) {
    return refuse(context, "the blob's size differs from what its header says");
  }
  code.values = bytes + kHeaderSize;
  code.code = reinterpret_cast<const Instruction*>(bytes + rows);
  const char* reason = check(code);
  if (reason != nullptr) return refuse(context, reason);
  const size_t room = sizeof(Code) + code.tensors * sizeof(Named);
  void* memory = context->allocate(context, room, alignof(Code));
  if (memory == nullptr) return static_cast<etx_status>(etx::Error::MemoryAllocationFailed);
  auto* named = reinterpret_cast<Named*>(static_cast<unsigned char*>(memory) + sizeof(Code));
  const auto* text = reinterpret_cast<const char*>(bytes + names);
  const etx_status status = find_tensors(context, text, code, named);
  if (status != 0) return status;
  code.named = named;
  *result = ::new (memory) Code(code);
  return 0;
}

}  // namespace pointwise
