// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_BITS_H_
#define ETX_NPU_BITS_H_

#include <cstddef>
#include <cstdint>

namespace etx::npu {

/// Reads numbers of a few bits, the lowest bit of each byte first.
class Bits {
 public:
  Bits() = default;
  Bits(const uint8_t* data, size_t size) : data_(data), end_(size * 8) {}

  /// Returns the next `count` (at most 16) bits, zeros behind the end.
  uint32_t get(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ < end_) value |= static_cast<uint32_t>(data_[at_ >> 3] >> (at_ & 7) & 1) << i;
    }
    return value;
  }

  void align() { at_ = (at_ + 7) & ~static_cast<size_t>(7); }
  bool is_over() const { return at_ > end_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t end_ = 0;
  size_t at_ = 0;
};

}  // namespace etx::npu

#endif  // ETX_NPU_BITS_H_
