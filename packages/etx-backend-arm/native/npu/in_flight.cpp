// SPDX-License-Identifier: BSD-3-Clause
#include "npu/in_flight.h"

namespace etx::npu {

Fault InFlight::start(const Extent& source, const Extent& target) {
  if (transfers_ == kMostTransfers) return "too many transfers at once";
  for (uint32_t i = 0; i < operators_; ++i) {
    const Use& use = operator_[i];
    if (use.written.meets(source)) return "a transfer of what an operator not waited for writes";
    bool is_used = use.written.meets(target);
    for (size_t k = 0; k < use.count; ++k) is_used = is_used || use.reads[k].meets(target);
    if (is_used) return "a transfer over what an operator not waited for uses";
  }
  for (uint32_t i = 0; i < transfers_; ++i) {
    const Transfer& other = transfer_[i];
    if (other.source.meets(target) || other.target.meets(target)) {
      return "a transfer over what another one, not waited for, uses";
    }
  }
  transfer_[transfers_++] = {source, target};
  return nullptr;
}

Fault InFlight::start(const Use& use) {
  for (uint32_t i = 0; i < transfers_; ++i) {
    if (transfer_[i].source.meets(use.written) || transfer_[i].target.meets(use.written)) {
      return "an operator that writes over what a transfer not waited for uses";
    }
  }
  if (operators_ == kMostOperators) end_operators(kMostOperators - 1);
  operator_[operators_++] = use;
  return nullptr;
}

void InFlight::end_operators(uint32_t left) {
  if (operators_ <= left) return;
  const uint32_t ended = operators_ - left;
  for (uint32_t i = 0; i < left; ++i) operator_[i] = operator_[i + ended];
  operators_ = left;
}

bool InFlight::end_transfer(uint32_t left, Extent* target) {
  if (transfers_ <= left) return false;
  *target = transfer_[0].target;
  --transfers_;
  for (uint32_t i = 0; i < transfers_; ++i) transfer_[i] = transfer_[i + 1];
  return true;
}

}  // namespace etx::npu
