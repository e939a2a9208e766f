// SPDX-License-Identifier: BSD-3-Clause
#include "npu/machine.h"
#include "npu/scaling.h"

namespace etx::npu {
namespace {

enum Kind : uint32_t { kMul, kAdd, kSub, kMin, kMax, kLeakyRelu, kAbs, kClz, kShr, kShl };
enum Broadcast : uint32_t { kHeight = 1, kWidth = 2, kChannels = 4, kReversed = 64, kScalar = 128 };
constexpr uint32_t kScaleA = 1, kScaleB = 2;
constexpr uint32_t kGlobalScale = 1 << 8;
constexpr uint32_t kBits = 32;

int64_t leading_zeros(int64_t value) {
  int64_t count = 0;
  for (auto bits = static_cast<uint32_t>(value); count < kBits && bits >> 31 == 0; bits <<= 1) {
    ++count;
  }
  return count;
}

bool is_unary(uint32_t kind) { return kind == kAbs || kind == kClz; }

}  // namespace

Fault Machine::add_second(const FeatureMap& from, uint32_t kind, Use* use) const {
  const uint32_t bits = registers_[kIfm2Broadcast];
  if (is_unary(kind) || (bits & kScalar) != 0) return nullptr;
  FeatureMap other = {};
  NPU_TRY(FeatureMap::second(registers_, (bits & kChannels) != 0 ? 1 : from.depth, &other));
  const uint32_t rows = (bits & kHeight) != 0 ? 1 : registers_.size(kOfmHeight);
  use->read(other.extent(rows, (bits & kWidth) != 0 ? 1 : registers_.size(kOfmWidth)));
  return nullptr;
}

Fault Machine::combine(const FeatureMap& from, const FeatureMap& to, uint32_t kind) {
  if (kind == kLeakyRelu || kind > kShl) {
    return "an operator by element that the simulator does not have yet";
  }
  const uint32_t bits = registers_[kIfm2Broadcast];
  const bool has_scalar = is_unary(kind) || (bits & kScalar) != 0;
  FeatureMap other = {};
  const uint32_t channels = (bits & kChannels) != 0 ? 1 : from.depth;
  if (!has_scalar) NPU_TRY(FeatureMap::second(registers_, channels, &other));
  int32_t* first = workspace_.patch;
  int32_t* second = first + from.depth;
  const int32_t scalar = registers_.number(kIfm2Scalar) - registers_.number(kIfm2ZeroPoint);
  const bool is_scaled = (registers_[kOfmPrecision] & kGlobalScale) != 0;
  const uint64_t given = is_scaled ? registers_[kOfmScale] : 1;
  const auto shift = static_cast<uint32_t>(given >> 32 & 63);
  for (uint32_t y = 0; y < registers_.size(kOfmHeight); ++y) {
    for (uint32_t x = 0; x < registers_.size(kOfmWidth); ++x) {
      NPU_TRY(may_go_on());
      NPU_TRY(from.read(*memory_, y, x, first));
      if (!has_scalar) {
        NPU_TRY(other.read(*memory_, (bits & kHeight) != 0 ? 0 : y, (bits & kWidth) != 0 ? 0 : x,
                           second));
      }
      for (uint32_t c = 0; c < to.depth; ++c) {
        int64_t a = first[c], b = has_scalar ? scalar : second[channels == 1 ? 0 : c];
        int64_t made = 0;
        if (!is_unary(kind) && (bits & kReversed) != 0) {
          NPU_TRY(combine(kind, b, a, from.bytes, &made));
        } else {
          NPU_TRY(combine(kind, a, b, from.bytes, &made));
        }
        NPU_TRY(requantize(to, made, given & 0xffffffffu, shift, workspace_.pixel + c));
      }
      NPU_TRY(to.write(memory_, y, x, workspace_.pixel));
    }
  }
  return nullptr;
}

Fault Machine::combine(uint32_t kind, int64_t a, int64_t b, uint32_t bytes, int64_t* result) const {
  switch (kind) {
    case kMul: *result = a * b; return nullptr;
    case kMin: *result = a < b ? a : b; return nullptr;
    case kMax: *result = a > b ? a : b; return nullptr;
    case kAbs: *result = a < 0 ? -a : a; return nullptr;
    case kClz: *result = leading_zeros(a); return nullptr;
    case kShl:
    case kShr:
      if (b < 0 || b >= kBits) return "a shift by less than 0 or more than 31 bits";
      if (kind == kShr) {
        return scaled(a, 1, static_cast<uint32_t>(b), registers_[kOfmPrecision] >> 14, result);
      }
      *result = static_cast<int32_t>(static_cast<uint32_t>(a) << b);
      return nullptr;
    default: break;
  }
  const uint32_t mode = registers_[kIfmPrecision] >> 8 & 3;
  if (mode > kScaleB) return "an unknown mode of scaling operands";
  const uint64_t scale_a = registers_[kOperandAScale], scale_b = registers_[kOperandBScale];
  if (mode == 0) {
    if (bytes < 4) {
      a *= static_cast<int64_t>(scale_a & 0xffff);
      b *= static_cast<int64_t>(scale_b & 0xffff);
    }
  } else {
    // One operand is scaled; the other one, of the larger scale, is shifted by as much as stays
    // below 32 bits.
    int64_t* small = mode == kScaleA ? &a : &b;
    int64_t* large = mode == kScaleA ? &b : &a;
    const auto shift = static_cast<uint32_t>(scale_a >> 32 & 63);
    NPU_TRY(scaled(*small, scale_a & 0xffffffffu, shift, registers_[kIfmPrecision] >> 14, small));
    *large *= int64_t{1} << (bytes == 1 ? 19 : 14);
  }
  *result = kind == kAdd ? a + b : a - b;
  return nullptr;
}

Fault Machine::reduce(const FeatureMap& from, const FeatureMap& to) {
  const uint64_t given = registers_[kOfmScale];
  const auto shift = static_cast<uint32_t>(given >> 32 & 63);
  for (uint32_t y = 0; y < registers_.size(kOfmHeight); ++y) {
    for (uint32_t x = 0; x < registers_.size(kOfmWidth); ++x) {
      NPU_TRY(may_go_on());
      NPU_TRY(from.read(*memory_, y, x, workspace_.patch));
      int64_t sum = 0;
      for (uint32_t c = 0; c < from.depth; ++c) sum += workspace_.patch[c];
      NPU_TRY(requantize(to, sum, given & 0xffffffffu, shift, workspace_.pixel));
      NPU_TRY(to.write(memory_, y, x, workspace_.pixel));
    }
  }
  return nullptr;
}

}  // namespace etx::npu
