// SPDX-License-Identifier: BSD-3-Clause
#include "npu/weights.h"

namespace etx::npu {
namespace {

constexpr uint32_t kNoRuns = 6;
constexpr uint32_t kEndOfStream = 7;
constexpr uint32_t kPlain = 7;

}  // namespace

void WeightStream::Lane::begin(uint32_t count) {
  read = written = waiting = position = carry = 0;
  total = count;
  was_enabled = false;
}

Fault WeightStream::next(int16_t* weight) {
  for (;;) {
    if (zeros_ > 0) {
      --zeros_;
      *weight = 0;
      return nullptr;
    }
    if (owes_run_) {
      if (runs_.read < runs_.written) {
        zeros_ = runs_.values[runs_.read++ % kRing];
        owes_run_ = false;
        continue;
      }
    } else if (weights_.read < weights_.written) {
      *weight = value_of(weights_.values[weights_.read++ % kRing]);
      owes_run_ = has_runs_ && runs_.read < runs_.total;
      return nullptr;
    } else if (weights_.read == weights_.total) {
      NPU_TRY(begin_slice());
      continue;
    }
    NPU_TRY(read_chunk());
  }
}

Fault WeightStream::begin_slice() {
  if (bits_.is_over()) return "a weight stream ends before its last weight";
  run_divisor_ = bits_.get(3);
  while (run_divisor_ == kEndOfStream) {
    bits_.align();
    has_palette_ = false;
    if (bits_.is_over()) return "a weight stream ends before its last weight";
    run_divisor_ = bits_.get(3);
  }
  if (run_divisor_ > 3 && run_divisor_ != kNoRuns) return "a weight stream has an unknown code";
  const bool had_runs = has_runs_;
  has_runs_ = run_divisor_ != kNoRuns;
  const uint32_t count = bits_.get(15) + 1;
  divisor_ = bits_.get(3);
  truncated_ = bits_.get(1) != 0;
  const bool new_palette = bits_.get(1) != 0;
  if (!new_palette && (!has_palette_ || had_runs != has_runs_)) {
    return "a slice of a weight stream lacks its palette";
  }
  if (new_palette) NPU_TRY(read_palette());
  plain_ = divisor_ == kPlain;
  if (plain_) {
    divisor_ = palette_size_ > 0 ? 0 : value_bits_;
    while (palette_size_ > 0 && 1u << divisor_ < palette_size_) ++divisor_;
  } else if (divisor_ > 5) {
    return "a weight stream has an unknown divisor";
  }
  weights_.begin(count);
  runs_.begin(has_runs_ ? count + (new_palette ? 1 : 0) : 0);
  owes_run_ = has_runs_ && new_palette;
  return nullptr;
}

Fault WeightStream::read_palette() {
  direct_offset_ = bits_.get(5);
  palette_size_ = bits_.get(5);
  if (palette_size_ > 0) ++palette_size_;
  value_bits_ = bits_.get(3) + 2;
  for (uint32_t i = 0; i < palette_size_; ++i) palette_[i] = bits_.get(value_bits_);
  has_palette_ = true;
  return nullptr;
}

Fault WeightStream::read_chunk() {
  if (bits_.is_over()) return "a weight stream ends before its last weight";
  const int64_t balance = has_runs_ ? static_cast<int64_t>(weights_.position) - runs_.position : 0;
  const bool reads_weights = balance < 8 && weights_.position < weights_.total;
  const bool reads_runs = has_runs_ && balance >= 0 && runs_.position < runs_.total;
  if (!reads_weights && !reads_runs && weights_.waiting == 0 && runs_.waiting == 0) {
    return "a weight stream has runs that do not fit its weights";
  }
  Lane weights, runs;
  const uint32_t unary = reads_weights && !plain_ ? bits_.get(kChunk) : 0;
  if (reads_runs) read_run_quotients(&runs);
  if (reads_weights) read_weight_quotients(&weights, unary);
  for (uint32_t i = 0; i < weights_.waiting; ++i) {
    weights_.push((weights_.quotients[i] << divisor_) + bits_.get(divisor_));
  }
  for (uint32_t i = 0; i < runs_.waiting && runs_.written < runs_.total; ++i) {
    runs_.push((runs_.quotients[i] << run_divisor_) + bits_.get(run_divisor_));
  }
  weights_.waiting = weights.waiting;
  runs_.waiting = runs.waiting;
  for (uint32_t i = 0; i < kChunk; ++i) {
    if (i < weights.waiting) weights_.quotients[i] = weights.quotients[i];
    if (i < runs.waiting) runs_.quotients[i] = runs.quotients[i];
  }
  return nullptr;
}

void WeightStream::read_weight_quotients(Lane* fresh, uint32_t unary) {
  const uint32_t most = plain_ && divisor_ > 5 ? 8 : kChunk;
  uint32_t second = 0;
  for (uint32_t i = 0; i < most; ++i) second += unary >> i & 1;
  uint32_t extra = bits_.get(second);
  for (uint32_t i = 0; i < most && weights_.position < weights_.total; ++i) {
    uint32_t code = 0;
    if (unary >> i & 1) {
      code = 1 + (extra & 1);
      extra >>= 1;
    }
    weights_.carry += code;
    if (code < 2 || truncated_) {
      fresh->quotients[fresh->waiting++] = weights_.carry;
      weights_.carry = 0;
      ++weights_.position;
    }
  }
}

void WeightStream::read_run_quotients(Lane* fresh) {
  const uint32_t most = run_divisor_ < 3 ? 12 : 8;
  const uint32_t unary = bits_.get(most);
  for (uint32_t i = 0; i < most; ++i) {
    if (unary >> i & 1) {
      ++runs_.carry;
    } else {
      fresh->quotients[fresh->waiting++] = runs_.carry;
      runs_.carry = 0;
      ++runs_.position;
    }
  }
}

int16_t WeightStream::value_of(uint32_t index) const {
  const uint32_t value =
      index < palette_size_ ? palette_[index] : index - palette_size_ + direct_offset_;
  const auto magnitude = static_cast<int16_t>(value >> 1 & 255);
  return static_cast<int16_t>((value & 1) != 0 ? -magnitude : magnitude);
}

}  // namespace etx::npu
