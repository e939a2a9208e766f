// SPDX-License-Identifier: BSD-3-Clause
#include "npu/feature_map.h"

namespace etx::npu {
namespace {

constexpr uint32_t kBrick = 16;
constexpr uint32_t kBricks = 1;

Fault set_format(uint32_t precision, uint32_t log_bytes, FeatureMap* map) {
  const uint32_t format = precision >> 6 & 3;
  if (format > kBricks || log_bytes > 2) return "an unknown format of a feature map";
  map->bytes = 1u << log_bytes;
  map->is_signed = (precision & 1) != 0;
  map->is_bricks = format == kBricks;
  return nullptr;
}

int32_t load(const uint8_t* data, uint32_t bytes, bool is_signed) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(data[i]) << 8 * i;
  if (bytes == 1 && is_signed) return static_cast<int8_t>(value);
  if (bytes == 2 && is_signed) return static_cast<int16_t>(value);
  return static_cast<int32_t>(value);
}

void store(uint8_t* data, uint32_t bytes, int32_t value) {
  for (uint32_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<uint8_t>(static_cast<uint32_t>(value) >> 8 * i);
  }
}

/// Where a map is described.
struct Place {
  Short region, height0, height1, width0, depth, zero_point;
  Long base, stride_y, stride_x, stride_c;
};

constexpr Place kInput = {kIfmRegion,    kIfmHeight0, kIfmHeight1, kIfmWidth0,  kIfmDepth,
                          kIfmZeroPoint, kIfmBase,    kIfmStrideY, kIfmStrideX, kIfmStrideC};
constexpr Place kOutput = {kOfmRegion,    kOfmHeight0, kOfmHeight1, kOfmWidth0,  kOfmDepth,
                           kOfmZeroPoint, kOfmBase,    kOfmStrideY, kOfmStrideX, kOfmStrideC};
constexpr Place kSecond = {kIfm2Region,    kIfm2Height0, kIfm2Height1, kIfm2Width0,  kIfmDepth,
                           kIfm2ZeroPoint, kIfm2Base,    kIfm2StrideY, kIfm2StrideX, kIfm2StrideC};

/// A stride of 40 bits, negative where a map is reversed, as a number that is added modulo 2**64.
uint64_t signed_stride(uint64_t bits) {
  constexpr uint64_t kSign = uint64_t{1} << 39;
  return ((bits & (2 * kSign - 1)) ^ kSign) - kSign;
}

void set_place(const Registers& registers, const Place& place, FeatureMap* map) {
  map->region = registers[place.region];
  for (uint16_t i = 0; i < 4; ++i) map->base[i] = registers[static_cast<Long>(place.base + i)];
  map->stride_y = signed_stride(registers[place.stride_y]);
  map->stride_x = signed_stride(registers[place.stride_x]);
  map->stride_c = signed_stride(registers[place.stride_c]);
  map->height0 = registers.size(place.height0);
  map->height1 = registers.size(place.height1);
  map->width0 = registers.size(place.width0);
  map->depth = registers.size(place.depth);
  map->zero_point = registers.number(place.zero_point);
}

}  // namespace

Fault FeatureMap::input(const Registers& registers, FeatureMap* map) {
  set_place(registers, kInput, map);
  return set_format(registers[kIfmPrecision], registers[kIfmPrecision] >> 2 & 3, map);
}

Fault FeatureMap::output(const Registers& registers, FeatureMap* map) {
  set_place(registers, kOutput, map);
  return set_format(registers[kOfmPrecision], registers[kOfmPrecision] >> 1 & 3, map);
}

Fault FeatureMap::second(const Registers& registers, uint32_t channels, FeatureMap* map) {
  set_place(registers, kSecond, map);
  map->depth = channels;
  return set_format(registers[kIfm2Precision], registers[kIfm2Precision] >> 2 & 3, map);
}

uint64_t FeatureMap::address(uint32_t y, uint32_t x, uint32_t c, uint32_t* end) const {
  uint32_t tile = 0;
  if (x >= width0) {
    x -= width0;
    tile = 1;
  }
  if (y >= (tile == 0 ? height0 : height1)) {
    y -= tile == 0 ? height0 : height1;
    tile += 2;
  }
  const uint64_t start = base[tile] + y * stride_y;
  *end = is_bricks ? (c / kBrick + 1) * kBrick : depth;
  if (*end > depth) *end = depth;
  if (!is_bricks) return start + x * stride_x + static_cast<uint64_t>(c) * bytes;
  const uint64_t column = static_cast<uint64_t>(x) * kBrick + c % kBrick;
  return start + c / kBrick * stride_c + column * bytes;
}

Extent FeatureMap::extent(uint32_t rows, uint32_t columns) const {
  // In each tile addresses grow or fall along each axis: the ends are at corners.
  const uint32_t ys[] = {0, height0 - 1, height0, height1 - 1, height1, rows - 1};
  const uint32_t xs[] = {0, width0 - 1, width0, columns - 1};
  const uint32_t cs[] = {0, depth - 1};
  Extent made = {Memory::place(region), UINT64_MAX, 0};
  for (const uint32_t y : ys) {
    for (const uint32_t x : xs) {
      if (y >= rows || x >= columns) continue;
      for (const uint32_t c : cs) {
        uint32_t end = 0;
        const uint64_t at = address(y, x, c, &end);
        if (at < made.begin) made.begin = at;
        if (at + bytes > made.end) made.end = at + bytes;
      }
    }
  }
  return made;
}

Fault FeatureMap::read(const Memory& memory, uint32_t y, uint32_t x, int32_t* values) const {
  for (uint32_t c = 0, end = 0; c < depth; c = end) {
    const uint64_t at = address(y, x, c, &end);
    const uint8_t* data = nullptr;
    NPU_TRY(memory.read(region, at, static_cast<size_t>(end - c) * bytes, &data));
    for (uint32_t i = c; i < end; ++i, data += bytes) {
      values[i] = load(data, bytes, is_signed) - zero_point;
    }
  }
  return nullptr;
}

Fault FeatureMap::write(Memory* memory, uint32_t y, uint32_t x, const int32_t* values) const {
  for (uint32_t c = 0, end = 0; c < depth; c = end) {
    const uint64_t at = address(y, x, c, &end);
    uint8_t* data = nullptr;
    NPU_TRY(memory->write(region, at, static_cast<size_t>(end - c) * bytes, &data));
    for (uint32_t i = c; i < end; ++i, data += bytes) store(data, bytes, values[i]);
  }
  return nullptr;
}

}  // namespace etx::npu
