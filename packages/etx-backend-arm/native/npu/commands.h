// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_COMMANDS_H_
#define ETX_NPU_COMMANDS_H_

#include <cstdint>
#include <cstring>

namespace etx::npu {

/// Commands of Ethos-U55 and U65 with 16 bits beside the number.
enum Short : uint16_t {
  kStop = 0x000,
  kConv = 0x002,
  kDepthwise = 0x003,
  kPool = 0x005,
  kElementwise = 0x006,
  kDmaStart = 0x010,
  kDmaWait = 0x011,
  kKernelWait = 0x012,
  kIfmPadTop = 0x100,
  kIfmPadLeft = 0x101,
  kIfmPadRight = 0x102,
  kIfmPadBottom = 0x103,
  kIfmDepth = 0x104,
  kIfmPrecision = 0x105,
  kIfmUpscale = 0x107,
  kIfmZeroPoint = 0x109,
  kIfmWidth0 = 0x10a,
  kIfmHeight0 = 0x10b,
  kIfmHeight1 = 0x10c,
  kIfmRegion = 0x10f,
  kOfmWidth = 0x111,
  kOfmHeight = 0x112,
  kOfmDepth = 0x113,
  kOfmPrecision = 0x114,
  kOfmBlockDepth = 0x117,
  kOfmZeroPoint = 0x118,
  kOfmWidth0 = 0x11a,
  kOfmHeight0 = 0x11b,
  kOfmHeight1 = 0x11c,
  kOfmRegion = 0x11f,
  kKernelWidth = 0x120,
  kKernelHeight = 0x121,
  kKernelStride = 0x122,
  kParallelMode = 0x123,
  kActivation = 0x125,
  kActivationMin = 0x126,
  kActivationMax = 0x127,
  kWeightRegion = 0x128,
  kScaleRegion = 0x129,
  kDmaSourceRegion = 0x130,
  kDmaTargetRegion = 0x131,
  kIfm2Broadcast = 0x180,
  kIfm2Scalar = 0x181,
  kIfm2Precision = 0x185,
  kIfm2ZeroPoint = 0x189,
  kIfm2Width0 = 0x18a,
  kIfm2Height0 = 0x18b,
  kIfm2Height1 = 0x18c,
  kIfm2Region = 0x18f,
};

/// Commands with an address or another number of 32 bits and more.
enum Long : uint16_t {
  kIfmBase = 0x000,
  kIfmStrideX = 0x004,
  kIfmStrideY = 0x005,
  kIfmStrideC = 0x006,
  kOfmBase = 0x010,
  kOfmStrideX = 0x014,
  kOfmStrideY = 0x015,
  kOfmStrideC = 0x016,
  kWeightBase = 0x020,
  kWeightLength = 0x021,
  kScaleBase = 0x022,
  kScaleLength = 0x023,
  kOfmScale = 0x024,
  kOperandAScale = 0x025,
  kOperandBScale = 0x026,
  kDmaSource = 0x030,
  kDmaTarget = 0x031,
  kDmaLength = 0x032,
  kIfm2Base = 0x080,
  kIfm2StrideX = 0x084,
  kIfm2StrideY = 0x085,
  kIfm2StrideC = 0x086,
  kWeight1Base = 0x090,
  kWeight1Length = 0x091,
  kScale1Base = 0x092,
};

/// How each pixel of an input becomes four: `kNearest` repeats it, `kZeros` adds zeros.
enum Upscale : uint32_t { kNearest = 1, kZeros = 2 };

/// What the commands have set so far.
struct Registers {
  uint16_t narrow[256] = {};
  uint64_t wide[256] = {};

  void clear() {
    std::memset(narrow, 0, sizeof(narrow));
    std::memset(wide, 0, sizeof(wide));
  }
  uint32_t operator[](Short command) const { return narrow[command & 255]; }
  uint64_t operator[](Long command) const { return wide[command]; }
  /// The register of a size that is stored less one.
  uint32_t size(Short command) const { return narrow[command & 255] + 1u; }
  int32_t number(Short command) const { return static_cast<int16_t>(narrow[command & 255]); }
};

}  // namespace etx::npu

#endif  // ETX_NPU_COMMANDS_H_
