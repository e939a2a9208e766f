// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_CACHE_DIGEST_H_
#define ETX_XNNPACK_CACHE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace etx::xnnpack {

/// 128 bits that stand for bytes. Equal digests are a hint: who shares by them compares the bytes.
struct Digest {
  uint64_t low, high;
  bool operator==(const Digest& other) const { return low == other.low && high == other.high; }
};

inline Digest digest_of(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  uint64_t lanes[4] = {size, 0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u};
  const auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ (lane >> 29);
  };
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes + i, 32);
    for (int k = 0; k < 4; ++k) lanes[k] = mix(lanes[k], words[k]);
  }
  uint64_t rest[4] = {};
  if (i < size) std::memcpy(rest, bytes + i, size - i);
  for (int k = 0; k < 4; ++k) lanes[k] = mix(lanes[k], rest[k]);
  const uint64_t low = mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3]));
  return {low, mix(mix(lanes[3], lanes[0] + 1), mix(lanes[1], lanes[2] ^ low))};
}

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_CACHE_DIGEST_H_
