// SPDX-License-Identifier: BSD-3-Clause
#include "npu/stream.h"

#include <cstring>

namespace etx::npu {
namespace {

uint32_t number(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

Fault Stream::read(const Bytes& commands, Stream* stream) {
  constexpr uint32_t kConfigure = 1, kCommands = 2, kNothing = 5;
  const size_t words = commands.size / 4;
  if (words == 0 || std::memcmp(commands.data, "COP1", 4) != 0) {
    return "its commands do not begin with COP1";
  }
  for (size_t at = 1; at < words;) {
    const uint32_t word = number(commands.data + at++ * 4);
    const uint32_t action = word & 255;
    if (action == kConfigure) {
      if (words - at < 2) break;
      const uint32_t configuration = number(commands.data + at * 4);
      if (configuration >> 28 > 1) {
        return "it is for an Ethos-U85; the simulator is an Ethos-U55 or U65";
      }
      stream->macs = 1u << (configuration & 15);
      const uint32_t most = configuration >> 28 == 1 ? 512 : 256;
      if (stream->macs < 32 || stream->macs > most) {
        return "it is for an NPU of another size; the simulator has 32 to 256 MACs, a U65 512";
      }
      at += 2;
    } else if (action == kCommands) {
      stream->words = (word >> 8 & 255) << 16 | word >> 16;
      if (stream->words > words - at) return "its command stream is longer than its block";
      stream->data = commands.data + at * 4;
      return stream->macs == 0 ? "its commands do not say for which NPU they are" : nullptr;
    } else if (action != kNothing) {
      return "an unknown action of the driver";
    }
  }
  return "it has no command stream";
}

}  // namespace etx::npu
