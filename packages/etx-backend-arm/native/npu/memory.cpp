// SPDX-License-Identifier: BSD-3-Clause
#include "npu/memory.h"

namespace etx::npu {

void Region::mark(uint64_t address, size_t count, bool is_known) {
  if (known == nullptr) return;
  for (size_t i = static_cast<size_t>(address); i < address + count; ++i) {
    const auto bit = static_cast<uint8_t>(1u << (i & 7));
    known[i >> 3] = static_cast<uint8_t>(is_known ? known[i >> 3] | bit : known[i >> 3] & ~bit);
  }
}

Fault Memory::read(uint32_t region, uint64_t address, size_t count, const uint8_t** data) const {
  if (region >= kRegions || regions_[region].data == nullptr) return "a region that is not there";
  const Region& from = regions_[region];
  if (address > from.size || count > from.size - address) return "a read behind its region's end";
  if (from.known != nullptr) {
    for (size_t i = static_cast<size_t>(address); i < address + count; ++i) {
      if ((from.known[i >> 3] >> (i & 7) & 1) == 0) {
        return "a read of bytes that nothing has written, or of a transfer not waited for";
      }
    }
  }
  *data = from.data + address;
  return nullptr;
}

Fault Memory::write(uint32_t region, uint64_t address, size_t count, uint8_t** data) {
  if (region >= kRegions || regions_[region].data == nullptr) return "a region that is not there";
  Region& to = regions_[region];
  if (to.is_constant) return "a write into constant memory";
  if (address > to.size || count > to.size - address) return "a write behind its region's end";
  to.mark(address, count, true);
  *data = to.data + address;
  return nullptr;
}

}  // namespace etx::npu
