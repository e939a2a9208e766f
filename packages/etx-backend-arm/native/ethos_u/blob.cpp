// SPDX-License-Identifier: BSD-3-Clause
#include "ethos_u/blob.h"

#include <cstring>

namespace etx::npu {
namespace {

constexpr size_t kHeader = 32, kName = 16, kAlignment = 16, kPort = 36;
constexpr uint64_t kMostBytes = uint64_t{1} << 31;

uint32_t number(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

bool is_named(const uint8_t* header, const char* name) {
  return std::strncmp(reinterpret_cast<const char*>(header), name, kName) == 0;
}

Fault check_ports(const Bytes& ports) {
  if (ports.size < 4 || (ports.size - 4) % kPort != 0 ||
      number(ports.data) != (ports.size - 4) / kPort) {
    return "its list of inputs or outputs has another length than it says";
  }
  for (size_t i = 0; i < Blob::count(ports); ++i) {
    const uint8_t* row = ports.data + 4 + i * kPort;
    uint64_t bytes = number(row + 24);
    for (size_t axis = 0; axis < 6 && bytes <= kMostBytes; ++axis) bytes *= number(row + axis * 4);
    if (bytes > kMostBytes) return "an input or output of more than 2 GB";
  }
  return nullptr;
}

}  // namespace

Fault Blob::read(const void* data, size_t size, Blob* blob) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (size < kHeader || !is_named(bytes, "vela_bin_stream")) {
    return "it does not begin with vela_bin_stream";
  }
  bool has_scratch = false;
  for (size_t at = kHeader;;) {
    if (size - at < kHeader) return "it ends before vela_end_stream";
    const uint8_t* header = bytes + at;
    const size_t length = number(header + kName);
    if (is_named(header, "vela_end_stream")) break;
    if (length > size - at - kHeader) return "a block is longer than the blob";
    const Bytes content = {header + kHeader, length};
    if (is_named(header, "cmd_data")) blob->commands = content;
    if (is_named(header, "inputs")) blob->inputs = content;
    if (is_named(header, "outputs")) blob->outputs = content;
    if (is_named(header, "weight_data")) {
      blob->weights = content;
      blob->weights_are_named = header[kName + 4] != 0;
    }
    if (is_named(header, "scratch_size")) {
      if (length != 4) return "its scratch size has another length than 4 bytes";
      blob->scratch_size = number(content.data);
      has_scratch = true;
    }
    const size_t padded = (length + kAlignment - 1) / kAlignment * kAlignment;
    if (padded > size - at - kHeader) return "it ends before vela_end_stream";
    at += kHeader + padded;
  }
  if (blob->commands.data == nullptr || !has_scratch) return "it has no commands or scratch size";
  NPU_TRY(check_ports(blob->inputs));
  return check_ports(blob->outputs);
}

Port Blob::port(const Bytes& ports, size_t index) {
  const uint8_t* row = ports.data + 4 + index * kPort;
  Port made = {number(row + 24), number(row + 24), number(row + 28), number(row + 32)};
  for (size_t axis = 0; axis < 6; ++axis) made.bytes *= number(row + axis * 4);
  return made;
}

}  // namespace etx::npu
