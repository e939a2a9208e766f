// SPDX-License-Identifier: BSD-3-Clause
#include "npu/scaling.h"

#include "npu/machine.h"

namespace etx::npu {
namespace {

constexpr uint32_t kTableIndex = 7, kTableSize = 256;

}  // namespace

Fault scaled(int64_t value, uint64_t scale, uint32_t shift, uint32_t rounding, int64_t* result) {
  if (rounding > kNatural) return "an unknown rounding";
  const auto factor = static_cast<int64_t>(scale);
  if (factor > 1 && (value > INT64_MAX / 2 / factor || value < INT64_MIN / 2 / factor)) {
    return "a product of more than 64 bits";
  }
  const int64_t product = value * factor;
  if (rounding == kTruncate) {
    *result = product < 0 ? -(-product >> shift) : product >> shift;
    return nullptr;
  }
  int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
  if (rounding == kDoubleRound && shift > 31) half += value < 0 ? -(int64_t{1} << 30) : 1 << 30;
  if (product > INT64_MAX - half) return "a product of more than 64 bits";
  *result = (product + half) >> shift;
  return nullptr;
}

Fault Machine::requantize(const FeatureMap& to, int64_t sum, uint64_t scale, uint32_t shift,
                          int32_t* result) const {
  int64_t value = 0;
  NPU_TRY(scaled(sum, scale, shift, registers_[kOfmPrecision] >> 14, &value));
  if (value > INT64_MAX / 2 || value < INT64_MIN / 2) return "a result of more than 32 bits";
  value += to.zero_point;
  if (to.bytes < 4) {
    int64_t low = registers_[kActivationMin], high = registers_[kActivationMax];
    if (to.is_signed) {
      low = registers_.number(kActivationMin);
      high = registers_.number(kActivationMax);
    }
    value = value < low ? low : value > high ? high : value;
  }
  if (value > INT32_MAX || value < INT32_MIN) return "a result of more than 32 bits";
  *result = static_cast<int32_t>(value);
  return (registers_[kActivation] & 31) != 0 ? look_up(to, result) : nullptr;
}

Fault Machine::look_up(const FeatureMap& to, int32_t* result) const {
  const uint32_t table = registers_[kActivation] & kTableIndex;
  const uint32_t index = static_cast<uint32_t>(*result + (to.is_signed ? 128 : 0)) % kTableSize;
  const uint8_t* entry = nullptr;
  NPU_TRY(memory_->read(Memory::kTables, table * kTableSize + index, 1, &entry));
  *result = to.is_signed ? static_cast<int8_t>(*entry) : *entry;
  return nullptr;
}

}  // namespace etx::npu
