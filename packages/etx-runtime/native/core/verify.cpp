// SPDX-License-Identifier: BSD-3-Clause
#include "verify.h"

namespace etx {
namespace {

/// Present and without a zero byte, so that it is the same text in C.
bool is_text(const ::flatbuffers::String* string) {
  if (string == nullptr) return false;
  for (uint32_t i = 0; i < string->size(); ++i) {
    if (string->data()[i] == 0) return false;
  }
  return true;
}

}  // namespace

Error Verifier::fail(const char* reason, Error error) {
  Failure failure;
  failure.error = error;
  failure.reason = reason;
  if (plan_ != nullptr && is_text(plan_->name())) failure.name = text(plan_->name());
  failure.offset = static_cast<const uint8_t*>(where_) - base_;
  failure.index = index_;
  return report(failures_, failure);
}

Error Verifier::fail(const char* reason) { return fail(reason, Error::InvalidProgram); }

Error Verifier::check_program() {
  ETX_TRY(check_segments());
  const auto* plans = program_.execution_plan();
  for (uint32_t i = 0; i < length(plans); ++i) {
    plan_ = &at(plans, i);
    ETX_TRY(check_plan());
  }
  return Error::Ok;
}

Error Verifier::check_segments() {
  const auto* segments = program_.segments();
  for (uint32_t i = 0; i < length(segments); ++i) {
    const fbs::DataSegment& segment = at(segments, i);
    where_ = &segment;
    index_ = static_cast<int32_t>(i);
    if (!fits(segment.offset(), segment.size(), room_)) {
      return fail("a segment ends after the file");
    }
  }
  ETX_TRY(check_offsets(program_.constant_segment()));
  for (uint32_t i = 0; i < length(program_.mutable_data_segments()); ++i) {
    ETX_TRY(check_offsets(&at(program_.mutable_data_segments(), i)));
  }
  index_ = -1;
  where_ = &program_;
  if (program_.constant_segment() != nullptr && length(program_.constant_buffer()) > 0 &&
      length(program_.constant_segment()->offsets()) > 1) {
    return fail("both constant_segment and constant_buffer hold constants");
  }
  for (uint32_t i = 0; i < length(program_.named_data()); ++i) {
    const fbs::NamedData& entry = at(program_.named_data(), i);
    where_ = &entry;
    if (!is_text(entry.key())) {
      const bool is_there = entry.key() != nullptr;
      return fail(is_there ? "a key of named data holds a zero byte" : "named data has no key");
    }
    if (entry.segment_index() >= length(segments)) return fail("named data has no segment");
  }
  return Error::Ok;
}

Error Verifier::check_offsets(const fbs::SubsegmentOffsets* subsegment) {
  index_ = -1;
  where_ = subsegment;
  const auto* offsets = subsegment == nullptr ? nullptr : subsegment->offsets();
  if (length(offsets) <= 1) return Error::Ok;
  if (subsegment->segment_index() >= length(program_.segments())) {
    return fail("the constants' segment does not exist");
  }
  const uint64_t size = at(program_.segments(), subsegment->segment_index()).size();
  for (uint32_t i = 0; i < offsets->size(); ++i) {
    index_ = static_cast<int32_t>(i);
    if (offsets->Get(i) > size) return fail("a constant begins after its segment");
  }
  return Error::Ok;
}

Error Verifier::check_plan() {
  where_ = plan_;
  index_ = -1;
  if (!is_text(plan_->name())) {
    const bool is_there = plan_->name() != nullptr;
    return fail(is_there ? "a method's name holds a zero byte" : "a method has no name");
  }
  if (length(plan_->chains()) > 1) {
    return fail("a method has several chains", Error::NotSupported);
  }
  const size_t count = length(instructions_of(*plan_));
  if (count > INT32_MAX / 2) return fail("too many instructions");
  counts_[kValues] = static_cast<uint32_t>(length(plan_->values()));
  counts_[kOperators] = static_cast<uint32_t>(length(plan_->operators()));
  counts_[kDelegates] = static_cast<uint32_t>(length(plan_->delegates()));
  counts_[kDestinations] = static_cast<uint32_t>(count + 1);
  counts_[kAnything] = UINT32_MAX;
  ETX_TRY(check_arenas());
  ETX_TRY(check_values());
  ETX_TRY(check_io());
  ETX_TRY(check_delegates());
  return check_instructions();
}

Error Verifier::check_arenas() {
  const auto* sizes = plan_->non_const_buffer_sizes();
  for (uint32_t i = 0; i < length(sizes); ++i) {
    index_ = static_cast<int32_t>(i);
    if (static_cast<uint64_t>(sizes->Get(i)) > PTRDIFF_MAX) {
      return fail("the size of a planned arena is negative or too large");
    }
  }
  const auto* devices = plan_->non_const_buffer_device();
  for (uint32_t i = 0; i < length(devices); ++i) {
    index_ = static_cast<int32_t>(i);
    if (at(devices, i).device_type() != fbs::DeviceType::CPU) {
      return fail("a planned arena is on another device than the CPU", Error::NotSupported);
    }
  }
  return Error::Ok;
}

Error Verifier::check_io() {
  where_ = plan_;
  ETX_TRY(check_args(plan_->outputs(), "an output is not a value of the method"));
  ETX_TRY(check_args(plan_->inputs(), "an input is not a value of the method"));
  for (uint32_t i = 0; i < length(plan_->inputs()); ++i) {
    const fbs::EValue& value = value_at(*plan_, plan_->inputs()->Get(i));
    const fbs::Tensor* tensor = as_tensor(value);
    where_ = &value;
    index_ = static_cast<int32_t>(i);
    if (tensor != nullptr ? is_constant(*tensor) : value.val_type() > fbs::KernelTypes::String) {
      return fail("an input is a constant or a list");
    }
  }
  return Error::Ok;
}

Error Verifier::check_delegates() {
  index_ = -1;
  for (uint32_t i = 0; i < counts_[kOperators]; ++i) {
    where_ = &at(plan_->operators(), i);
    if (at(plan_->operators(), i).name() == nullptr) return fail("an operator has no name");
  }
  for (uint32_t i = 0; i < counts_[kDelegates]; ++i) {
    const fbs::BackendDelegate& delegate = at(plan_->delegates(), i);
    where_ = &delegate;
    if (delegate.id() == nullptr) return fail("a delegate has no id");
    const fbs::BackendDelegateDataReference* data = delegate.processed();
    if (data == nullptr) return fail("a delegate has no data");
    const bool is_apart = data->location() == fbs::DataLocation::SEGMENT;
    const size_t count =
        is_apart ? length(program_.segments()) : length(program_.backend_delegate_data());
    if (data->index() >= count) return fail("a delegate's data does not exist");
    for (uint32_t k = 0; k < length(delegate.compile_specs()); ++k) {
      where_ = &at(delegate.compile_specs(), k);
      if (at(delegate.compile_specs(), k).key() == nullptr) {
        return fail("a compile spec has no key");
      }
    }
  }
  return Error::Ok;
}

Error Verifier::check_args(const FbVector<int32_t>* args, const char* reason) {
  for (uint32_t i = 0; i < length(args); ++i) {
    index_ = static_cast<int32_t>(i);
    if (!has(kValues, static_cast<uint32_t>(args->Get(i)))) return fail(reason);
  }
  return Error::Ok;
}

/// What the two fields of an instruction point at.
struct Verifier::CallRule {
  Kind first;
  Kind second;
  const char* reasons[2];
};

Error Verifier::check_instructions() {
  const auto* instructions = instructions_of(*plan_);
  for (uint32_t i = 0; i + 1 < counts_[kDestinations]; ++i) {
    const Call call = call_at(instructions, i);
    index_ = -1;
    where_ = table_at(instructions, i);
    if (call.table == nullptr) return fail("an instruction is empty");
    where_ = call.table;
    ETX_TRY(check_call(call));
  }
  return Error::Ok;
}

Error Verifier::check_call(const Call& call) {
  constexpr CallRule kRules[] = {
      {kOperators, kAnything, {"a kernel call has no operator", nullptr}},
      {kDelegates, kAnything, {"a delegate call has no delegate", nullptr}},
      {kValues,
       kValues,
       {"a move's source is not a value of the method",
        "a move's target is not a value of the method"}},
      {kValues, kDestinations, {"a jump has no condition", "a jump leaves the method"}},
      {kValues, kAnything, {"a free call has no tensor", nullptr}},
  };
  const size_t kind = static_cast<size_t>(call.kind) - 1;
  if (kind >= sizeof(kRules) / sizeof(kRules[0])) {
    return fail("an instruction of an unknown kind", Error::NotSupported);
  }
  const CallRule& rule = kRules[kind];
  if (!has(rule.first, call.first)) return fail(rule.reasons[0]);
  if (!has(rule.second, call.second)) return fail(rule.reasons[1]);
  if (call.is_call()) {
    if (length(call.args) > UINT16_MAX) return fail("an instruction has too many arguments");
    return check_args(call.args, "an argument is not a value of the method");
  }
  const fbs::KernelTypes type = kind_of(call.first);
  const fbs::Tensor* tensor = tensor_of(*plan_, call.first);
  if (call.kind == fbs::InstructionArguments::FreeCall) {
    return tensor != nullptr ? Error::Ok : fail(rule.reasons[0]);
  }
  if (call.kind == fbs::InstructionArguments::JumpFalseCall) {
    const bool is_bool = tensor != nullptr
                             ? tensor->scalar_type() == fbs::ScalarType::BOOL
                             : type == fbs::KernelTypes::Bool || type == fbs::KernelTypes::Int;
    return is_bool ? Error::Ok : fail("a jump's condition is neither a bool nor an integer");
  }
  bool same = type == kind_of(call.second);
  if (same && tensor != nullptr) {
    const fbs::Tensor& to = *tensor_of(*plan_, call.second);
    same =
        tensor->scalar_type() == to.scalar_type() && length(tensor->sizes()) == length(to.sizes());
  }
  return same ? Error::Ok : fail("a move changes the kind, dtype or rank of a value");
}

}  // namespace etx
