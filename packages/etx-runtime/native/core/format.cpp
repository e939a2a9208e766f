// SPDX-License-Identifier: BSD-3-Clause
#include "format.h"

namespace etx {
namespace {

using ::flatbuffers::ReadScalar;

/// Null when the field is absent.
[[gnu::pure]] const uint8_t* position_of(const void* table, uint16_t slot) {
  const auto* bytes = static_cast<const uint8_t*>(table);
  const uint8_t* vtable = bytes - ReadScalar<int32_t>(bytes);
  const size_t offset =
      slot < ReadScalar<uint16_t>(vtable) ? ReadScalar<uint16_t>(vtable + slot) : 0;
  return offset == 0 ? nullptr : bytes + offset;
}

constexpr uint16_t kFirst = fbs::KernelCall::VT_OP_INDEX;
constexpr uint16_t kSecond = fbs::KernelCall::VT_ARGS;
static_assert(kFirst == fbs::DelegateCall::VT_DELEGATE_INDEX &&
                  kFirst == fbs::MoveCall::VT_MOVE_FROM &&
                  kFirst == fbs::JumpFalseCall::VT_COND_VALUE_INDEX &&
                  kFirst == fbs::FreeCall::VT_VALUE_INDEX,
              "what an instruction is about comes first");
static_assert(kSecond == fbs::DelegateCall::VT_ARGS && kSecond == fbs::MoveCall::VT_MOVE_TO &&
                  kSecond == fbs::JumpFalseCall::VT_DESTINATION_INSTRUCTION,
              "arguments and destinations come second");

constexpr uint16_t kContents = fbs::String::VT_STRING_VAL;
static_assert(kContents == fbs::IntList::VT_ITEMS && kContents == fbs::DoubleList::VT_ITEMS &&
                  kContents == fbs::BoolList::VT_ITEMS && kContents == fbs::TensorList::VT_ITEMS &&
                  kContents == fbs::OptionalTensorList::VT_ITEMS,
              "strings and lists hold one vector");

}  // namespace

uint8_t byte_at(const void* table, uint16_t slot) {
  const uint8_t* position = position_of(table, slot);
  return position == nullptr ? uint8_t{0} : *position;
}

uint32_t word_at(const void* table, uint16_t slot) {
  const uint8_t* position = position_of(table, slot);
  return position == nullptr ? 0 : ReadScalar<uint32_t>(position);
}

uint64_t long_at(const void* table, uint16_t slot) {
  const uint8_t* position = position_of(table, slot);
  return position == nullptr ? 0 : ReadScalar<uint64_t>(position);
}

const void* target_at(const void* table, uint16_t slot) {
  const uint8_t* position = position_of(table, slot);
  return position == nullptr ? nullptr : position + ReadScalar<uint32_t>(position);
}

size_t length(const void* vector) {
  return vector == nullptr ? 0 : static_cast<const FbVector<uint8_t>*>(vector)->size();
}

const void* table_at(const void* tables, size_t index) {
  return static_cast<const FbTables<fbs::Null>*>(tables)->Get(static_cast<uint32_t>(index));
}

const char* skip(const char* text, const char* prefix) {
  while (*prefix != '\0') {
    if (*text++ != *prefix++) return nullptr;
  }
  return text;
}

bool equals(const char* text, const char* other) {
  const char* rest = skip(text, other);
  return rest != nullptr && *rest == '\0';
}

bool fits(uint64_t offset, uint64_t size, size_t room) {
  return offset <= room && size <= room - offset;
}

Call call_at(const void* instructions, size_t index) {
  const auto& instruction = *static_cast<const fbs::Instruction*>(table_at(instructions, index));
  Call call = {instruction.instr_args_type(), instruction.instr_args(), 0, 0, nullptr};
  const bool is_known =
      call.kind != fbs::InstructionArguments::NONE && call.kind <= fbs::InstructionArguments::MAX;
  if (call.table == nullptr || !is_known) return call;
  call.first = word_at(call.table, kFirst);
  if (call.is_call()) {
    call.args = static_cast<const FbVector<int32_t>*>(target_at(call.table, kSecond));
  } else if (call.kind != fbs::InstructionArguments::FreeCall) {
    call.second = word_at(call.table, kSecond);
  }
  return call;
}

const fbs::EValue& stored_value(const fbs::ExecutionPlan& plan, size_t index) {
  return at(plan.values(), index);
}

Tag tag_of(const fbs::EValue& value) {
  constexpr uint8_t kTags[] = {
      ETX_TAG_NONE,        ETX_TAG_NONE,      ETX_TAG_INT,         ETX_TAG_BOOL,
      ETX_TAG_DOUBLE,      ETX_TAG_TENSOR,    ETX_TAG_STRING,      ETX_TAG_LIST_INT,
      ETX_TAG_LIST_DOUBLE, ETX_TAG_LIST_BOOL, ETX_TAG_LIST_TENSOR, ETX_TAG_LIST_OPTIONAL_TENSOR};
  return static_cast<Tag>(kTags[static_cast<size_t>(value.val_type())]);
}

const void* contents_of(const fbs::EValue& value) {
  return value.val_type() < fbs::KernelTypes::String ? nullptr : target_at(value.val(), kContents);
}

const fbs::Tensor* as_tensor(const fbs::EValue& value) { return value.val_as_Tensor(); }

const fbs::Tensor* tensor_of(const fbs::ExecutionPlan& plan, size_t value) {
  return as_tensor(value_at(plan, value));
}

size_t element_size_of(const fbs::Tensor& tensor) { return element_size(scalar_type_of(tensor)); }

size_t alignment_of(const fbs::Tensor& tensor) {
  const size_t size = element_size_of(tensor);
  return size < 8 ? size : 8;
}

bool is_external(const fbs::Tensor& tensor) {
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  return extra != nullptr && extra->location() == fbs::TensorDataLocation::EXTERNAL;
}

bool is_unbound(const fbs::Tensor& tensor) {
  return tensor.allocation_info() == nullptr && tensor.data_buffer_idx() == 0 &&
         !is_external(tensor);
}

bool is_constant(const fbs::Tensor& tensor) {
  return tensor.allocation_info() == nullptr && !is_unbound(tensor);
}

uint64_t offset_of(const fbs::AllocationDetails& place) {
  return static_cast<uint64_t>(place.memory_offset_high()) << 32 | place.memory_offset_low();
}

uint64_t initial_segment_of(const fbs::Tensor& tensor) {
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  return extra == nullptr ? 0 : extra->mutable_data_segments_idx();
}

intptr_t numel_of(const fbs::Tensor& tensor) {
  const auto* sizes = tensor.sizes();
  size_t numel = 1;
  for (uint32_t i = 0; i < length(sizes); ++i) numel *= static_cast<size_t>(sizes->Get(i));
  return static_cast<intptr_t>(numel);
}

size_t nbytes_of(const fbs::Tensor& tensor) {
  return static_cast<size_t>(numel_of(tensor)) * element_size_of(tensor);
}

}  // namespace etx
