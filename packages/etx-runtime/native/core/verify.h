// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_VERIFY_H_
#define ETX_NATIVE_CORE_VERIFY_H_

#include <etx/failure.h>

#include "format.h"

namespace etx {

/// Checks all that a program's tables say about each other, after the flatbuffer itself was
/// verified: later code indexes by them without a check. Linear in the size of the program.
class Verifier {
 public:
  /// `base` is the first byte of the program, for offsets in reports; `room` what the file has for
  /// segments.
  Verifier(const fbs::Program& program, const void* base, size_t room, FailureSink* failures)
      : program_(program),
        base_(static_cast<const uint8_t*>(base)),
        room_(room),
        failures_(failures) {}

  Error check_program();

 private:
  /// What an index may point at.
  enum Kind : uint8_t { kValues, kOperators, kDelegates, kDestinations, kAnything, kNumKinds };
  struct CallRule;

  /// Reports the table that is looked at.
  Error fail(const char* reason, Error error);
  Error fail(const char* reason);

  Error check_segments();
  Error check_offsets(const fbs::SubsegmentOffsets* subsegment);
  Error check_plan();
  Error check_arenas();
  Error check_values();
  Error check_value(const fbs::EValue& value);
  Error check_list(const fbs::EValue& value);
  Error check_tensor(const fbs::Tensor& tensor);
  Error check_shape(const fbs::Tensor& tensor);
  Error check_memory(const fbs::Tensor& tensor);
  Error check_stored(const fbs::SubsegmentOffsets* offsets, const fbs::Tensor& tensor);
  Error check_io();
  Error check_delegates();
  Error check_instructions();
  Error check_call(const Call& call);
  Error check_args(const FbVector<int32_t>* args, const char* reason);
  bool has(Kind kind, uint64_t index) const { return index < counts_[kind]; }
  fbs::KernelTypes kind_of(uint32_t value) const { return value_at(*plan_, value).val_type(); }

  const fbs::Program& program_;
  const uint8_t* base_;
  size_t room_;
  FailureSink* failures_;
  const fbs::ExecutionPlan* plan_ = nullptr;
  /// The table that is looked at, and which item of it when not -1.
  const void* where_ = nullptr;
  int32_t index_ = -1;
  uint32_t counts_[kNumKinds] = {};
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_VERIFY_H_
