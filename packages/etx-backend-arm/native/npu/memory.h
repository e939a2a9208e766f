// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_MEMORY_H_
#define ETX_NPU_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "ethos_u/fault.h"

namespace etx::npu {

/// The bytes behind a region; `known` has a bit for each byte that was written, null: all were.
struct Region {
  uint8_t* data = nullptr;
  size_t size = 0;
  uint8_t* known = nullptr;
  bool is_constant = false;

  void mark(uint64_t address, size_t count, bool is_known);
};

/// Regions 0 (weights, constant) to 2 (1 and 2 are the same scratch memory), and the NPU's own
/// memory of tables, checked at each use.
class Memory {
 public:
  static constexpr uint32_t kTables = 8;
  static constexpr size_t kTableBytes = 2048;
  static constexpr uint32_t kRegions = 9;

  /// Where the bytes of a region are: regions 1 and 2 are the same.
  static uint32_t place(uint32_t region) { return region == 2 ? 1 : region; }
  Region& region(uint32_t index) { return regions_[index % kRegions]; }
  /// Returns bytes that lie in the region and were written before.
  Fault read(uint32_t region, uint64_t address, size_t count, const uint8_t** data) const;
  /// Returns bytes that may be written, and takes them for written.
  Fault write(uint32_t region, uint64_t address, size_t count, uint8_t** data);

 private:
  Region regions_[kRegions];
};

}  // namespace etx::npu

#endif  // ETX_NPU_MEMORY_H_
