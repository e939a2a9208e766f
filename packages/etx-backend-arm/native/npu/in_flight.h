// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_IN_FLIGHT_H_
#define ETX_NPU_IN_FLIGHT_H_

#include <cstddef>
#include <cstdint>

#include "ethos_u/fault.h"

namespace etx::npu {

/// Bytes from the first to the last that something uses of a region.
struct Extent {
  uint32_t region = 0;
  uint64_t begin = 0;
  uint64_t end = 0;

  bool meets(const Extent& other) const {
    const uint64_t first = begin > other.begin ? begin : other.begin;
    return region == other.region && first < end && first < other.end;
  }
};

/// What an operator reads and writes.
struct Use {
  static constexpr size_t kMost = 8;
  Extent reads[kMost];
  size_t count = 0;
  Extent written;

  void read(const Extent& extent) { reads[count++] = extent; }
};

/// Operators and transfers that were started and not waited for: they run beside what follows.
class InFlight {
 public:
  void clear() { operators_ = transfers_ = 0; }

  /// Adds a transfer; refuses one that meets what others write, or that writes what they use.
  Fault start(const Extent& source, const Extent& target);
  /// Adds an operator, which must not write what a transfer uses.
  Fault start(const Use& use);

  /// Leaves the newest operators.
  void end_operators(uint32_t left);
  /// Ends the oldest transfer but `left` others and stores its target; false where there is none.
  bool end_transfer(uint32_t left, Extent* target);

 private:
  struct Transfer {
    Extent source, target;
  };
  static constexpr uint32_t kMostTransfers = 4;
  /// As many operators run beside a transfer; those before have ended.
  static constexpr uint32_t kMostOperators = 2;

  Transfer transfer_[kMostTransfers] = {};
  uint32_t transfers_ = 0;
  Use operator_[kMostOperators] = {};
  uint32_t operators_ = 0;
};

}  // namespace etx::npu

#endif  // ETX_NPU_IN_FLIGHT_H_
