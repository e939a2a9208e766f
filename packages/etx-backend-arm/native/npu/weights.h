// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_WEIGHTS_H_
#define ETX_NPU_WEIGHTS_H_

#include "ethos_u/fault.h"
#include "npu/bits.h"

namespace etx::npu {

/// Decodes a compressed weight stream, one weight at a time.
///
/// A stream is a list of slices. A slice holds indices (Golomb-Rice codes in chunks of twelve, or
/// plain) into a palette of values, or the values themselves; between them it may hold the lengths
/// of runs of zeros, in chunks that alternate with those of the indices so that neither is more
/// than a few ahead. Remainders follow one chunk behind the quotients that they belong to.
class WeightStream {
 public:
  WeightStream(const uint8_t* data, size_t size) : bits_(data, size) {}

  /// Stores the next weight, from -255 to 255.
  Fault next(int16_t* weight);

 private:
  static constexpr uint32_t kRing = 64;
  static constexpr uint32_t kChunk = 12;

  /// Numbers that are decoded but not yet handed out, and quotients that wait for remainders.
  struct Lane {
    uint32_t values[kRing];
    uint32_t read = 0;     // handed out
    uint32_t written = 0;  // decoded
    uint32_t quotients[kChunk];
    uint32_t waiting = 0;   // quotients of the last chunk
    uint32_t position = 0;  // quotients seen in this slice
    uint32_t carry = 0;     // a quotient that goes on in the next chunk
    uint32_t total = 0;
    bool was_enabled = false;

    void begin(uint32_t count);
    void push(uint32_t value) { values[written++ % kRing] = value; }
  };

  Fault begin_slice();
  Fault read_palette();
  Fault read_chunk();
  void read_weight_quotients(Lane* fresh, uint32_t unary);
  void read_run_quotients(Lane* fresh);
  int16_t value_of(uint32_t index) const;

  Bits bits_;
  Lane weights_;
  Lane runs_;
  uint32_t palette_[32] = {};
  uint32_t palette_size_ = 0;
  uint32_t value_bits_ = 0;
  uint32_t direct_offset_ = 0;
  uint32_t divisor_ = 0;
  uint32_t run_divisor_ = 0;
  uint32_t zeros_ = 0;
  bool plain_ = false;
  bool truncated_ = false;
  bool has_runs_ = false;
  bool has_palette_ = false;
  bool leads_with_run_ = false;
  bool owes_run_ = false;
};

}  // namespace etx::npu

#endif  // ETX_NPU_WEIGHTS_H_
