// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_FEATURE_MAP_H_
#define ETX_NPU_FEATURE_MAP_H_

#include "npu/commands.h"
#include "npu/in_flight.h"
#include "npu/memory.h"

namespace etx::npu {

/// A tensor of height, width and depth in four tiles, linear or in bricks of 16 channels.
struct FeatureMap {
  uint32_t region;
  uint64_t base[4];
  uint64_t stride_y, stride_x, stride_c;
  uint32_t height0, height1, width0;
  uint32_t depth;
  uint32_t bytes;  ///< of an element: 1, 2 or 4
  bool is_signed;
  bool is_bricks;
  int32_t zero_point;

  static Fault input(const Registers& registers, FeatureMap* map);
  static Fault output(const Registers& registers, FeatureMap* map);
  /// The second input of an elementwise operator; `channels` are those of the first.
  static Fault second(const Registers& registers, uint32_t channels, FeatureMap* map);

  /// Where the pixels of so many rows and columns lie.
  Extent extent(uint32_t rows, uint32_t columns) const;
  /// Stores all channels of a pixel, less the zero point.
  Fault read(const Memory& memory, uint32_t y, uint32_t x, int32_t* values) const;
  /// Writes all channels of a pixel as they are.
  Fault write(Memory* memory, uint32_t y, uint32_t x, const int32_t* values) const;

 private:
  /// Where channel `c` of a pixel lies; the channels up to `*end` follow it.
  uint64_t address(uint32_t y, uint32_t x, uint32_t c, uint32_t* end) const;
};

}  // namespace etx::npu

#endif  // ETX_NPU_FEATURE_MAP_H_
