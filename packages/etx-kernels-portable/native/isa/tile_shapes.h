// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_TILE_SHAPES_H_
#define ETX_PORTABLE_TILE_SHAPES_H_

#include <cstdint>

#include "isa/tile_instructions.h"

namespace etx::portable {
namespace {

/// What the eight tiles hold while `rows` rows are multiplied at a time: 0 to 3 sums, 4 and 5 the
/// operands, 6 and 7 those of the last steps of 4 bytes where `rest`, fewer than 16, are left.
void set_tiles(int64_t rows, int64_t rest) {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.bytes[i] = 64;
    shapes.rows[i] = static_cast<uint8_t>(i == 5 || i == 7 ? 16 : rows);
  }
  if (rest > 0) {
    shapes.bytes[6] = static_cast<uint16_t>(rest * 4);
    shapes.rows[7] = static_cast<uint8_t>(rest);
  }
  configure_tiles(shapes);
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_TILE_SHAPES_H_
