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
  /// `base` is the first byte of the program, for offsets in reports.
  Verifier(const fbs::Program& program, const void* base, uint64_t segment_base, uint64_t file_size,
           FailureSink* failures)
      : program_(program),
        base_(static_cast<const uint8_t*>(base)),
        segment_base_(segment_base),
        file_size_(file_size),
        failures_(failures) {}

  Error check_program();

 private:
  Error fail(const char* reason, const void* where);
  Error fail(const char* reason, const void* where, Error error, size_t index = SIZE_MAX);

  Error check_segments();
  Error check_offsets(const fbs::SubsegmentOffsets& subsegment);
  Error check_plan(const fbs::ExecutionPlan& plan);
  Error check_values(const fbs::ExecutionPlan& plan);
  Error check_value(const fbs::ExecutionPlan& plan, const fbs::EValue& value);
  Error check_tensor(const fbs::ExecutionPlan& plan, const fbs::Tensor& tensor);
  Error check_shape(const fbs::Tensor& tensor);
  Error check_memory(const fbs::ExecutionPlan& plan, const fbs::Tensor& tensor);
  Error check_stored(const fbs::SubsegmentOffsets* offsets, uint64_t index,
                     const fbs::Tensor& tensor);
  Error check_tensor_list(const fbs::ExecutionPlan& plan, const FbVector<int32_t>* items,
                          bool optional);
  Error check_io(const fbs::ExecutionPlan& plan);
  Error check_operators(const fbs::ExecutionPlan& plan);
  Error check_delegates(const fbs::ExecutionPlan& plan);
  Error check_instruction(const fbs::ExecutionPlan& plan, const fbs::Instruction& instruction,
                          size_t count);
  Error check_args(const fbs::ExecutionPlan& plan, const FbVector<int32_t>* args);
  Error check_move(const fbs::ExecutionPlan& plan, const fbs::MoveCall& move);
  bool has_value(const fbs::ExecutionPlan& plan, int64_t index) const {
    return index >= 0 && static_cast<uint64_t>(index) < length(plan.values());
  }

  const fbs::Program& program_;
  const uint8_t* base_;
  uint64_t segment_base_;
  uint64_t file_size_;
  FailureSink* failures_;
  const char* method_ = nullptr;
};

}  // namespace etx

#endif  // ETX_NATIVE_CORE_VERIFY_H_
