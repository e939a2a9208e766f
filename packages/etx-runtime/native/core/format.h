// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_FORMAT_H_
#define ETX_NATIVE_CORE_FORMAT_H_

// The generated readers of program.fbs, and null-safe access: every field may be absent.

#include <cstring>

#define FLATBUFFERS_ASSERT(condition) static_cast<void>(0)
#include <flatbuffers/flatbuffers.h>

namespace etx {

/// What the field at `slot` of a table holds; 0 or null when it is absent. Here and below,
/// functions without `inline` are calls for the sake of code size.
[[gnu::pure]] uint8_t byte_at(const void* table, uint16_t slot);
[[gnu::pure]] uint32_t word_at(const void* table, uint16_t slot);
[[gnu::pure]] uint64_t long_at(const void* table, uint16_t slot);
[[gnu::pure]] const void* target_at(const void* table, uint16_t slot);

}  // namespace etx

namespace flatbuffers {

/// The base of the tables that the core reads: as Table, but its accessors are the calls above. The
/// generated readers derive from it, as `Table` stands for it while they are included: 1,040 bytes
/// less of the 17,340 that the core and one kernel take on a Cortex-M55 (-Os).
class CalledTable : private Table {
 public:
  using Table::VerifyField;
  using Table::VerifyOffset;
  using Table::VerifyTableStart;

  template <typename T>
  [[gnu::always_inline]] T GetField(voffset_t field, T absent) const {
    if (absent != T{} && !CheckField(field)) return absent;
    if constexpr (sizeof(T) == sizeof(uint8_t)) {
      return static_cast<T>(etx::byte_at(this, field));
    } else if constexpr (sizeof(T) == sizeof(uint32_t)) {
      return static_cast<T>(etx::word_at(this, field));
    } else {
      const uint64_t bits = etx::long_at(this, field);
      T value;
      std::memcpy(&value, &bits, sizeof(T));
      return value;
    }
  }
  template <typename P>
  P GetPointer(voffset_t field) const {
    return static_cast<P>(etx::target_at(this, field));
  }
};

}  // namespace flatbuffers

#define Table CalledTable
#include <program_generated.h>
#undef Table

#include <etx/error.h>
#include <etx/value.h>

namespace etx {

namespace fbs = ::etx_fbs;

template <typename T>
using FbVector = ::flatbuffers::Vector<T>;
template <typename T>
using FbTables = ::flatbuffers::Vector<::flatbuffers::Offset<T>>;

/// Items of a vector, whatever it holds; 0 when it is absent.
[[gnu::pure]] size_t length(const void* vector);

/// Table `index` of a vector of tables.
[[gnu::pure]] const void* table_at(const void* tables, size_t index);

template <typename T>
inline const T& at(const FbTables<T>* tables, size_t index) {
  return *static_cast<const T*>(table_at(tables, index));
}

inline const char* text(const ::flatbuffers::String* string) {
  return string == nullptr ? nullptr : string->c_str();
}

/// What follows `prefix` in a text, or null when it begins otherwise.
[[gnu::pure]] const char* skip(const char* text, const char* prefix);

[[gnu::pure]] bool equals(const char* text, const char* other);

inline bool equals(const ::flatbuffers::String* string, const char* other) {
  return string != nullptr && equals(string->c_str(), other);
}

/// True when `size` bytes from `offset` lie inside of `room` bytes.
bool fits(uint64_t offset, uint64_t size, size_t room);

inline const fbs::ExecutionPlan* as_plan(const void* plan) {
  return static_cast<const fbs::ExecutionPlan*>(plan);
}

inline const FbTables<fbs::Instruction>* instructions_of(const fbs::ExecutionPlan& plan) {
  return length(plan.chains()) == 0 ? nullptr : at(plan.chains(), 0).instructions();
}

/// An instruction as it is stored: the same two fields, whatever it does.
struct Call {
  fbs::InstructionArguments kind;
  /// Null when there is nothing to do.
  const void* table;
  /// Operator, delegate, or value.
  uint32_t first;
  /// The destination of a move or jump.
  uint32_t second;
  /// Of kernels and delegates, else null.
  const FbVector<int32_t>* args;

  bool is_call() const { return kind <= fbs::InstructionArguments::DelegateCall; }
};

/// Instruction `index` of instructions_of().
Call call_at(const void* instructions, size_t index);

const fbs::EValue& stored_value(const fbs::ExecutionPlan& plan, size_t index);

/// Of an index that was verified, whatever type the file has for it.
template <typename Index>
inline const fbs::EValue& value_at(const fbs::ExecutionPlan& plan, Index index) {
  return stored_value(plan, static_cast<size_t>(index));
}

/// What the slot of the value holds.
Tag tag_of(const fbs::EValue& value);

/// The characters or items of a string or list; null for values of other kinds.
const void* contents_of(const fbs::EValue& value);

/// Null when the value is not a tensor.
const fbs::Tensor* as_tensor(const fbs::EValue& value);
const fbs::Tensor* tensor_of(const fbs::ExecutionPlan& plan, size_t value);

inline ScalarType scalar_type_of(const fbs::Tensor& tensor) {
  return static_cast<ScalarType>(static_cast<int8_t>(tensor.scalar_type()));
}

/// Bytes of an element, and what its address must be a multiple of: at most 8.
size_t element_size_of(const fbs::Tensor& tensor);
size_t alignment_of(const fbs::Tensor& tensor);

bool is_external(const fbs::Tensor& tensor);

inline bool is_dynamic(const fbs::Tensor& tensor) {
  return tensor.shape_dynamism() != fbs::TensorShapeDynamism::STATIC;
}

/// Sizes and strides that a method keeps of a tensor: static sizes lie in the file, and the stride
/// of a static vector is that of all.
inline size_t kept_dims(size_t rank, bool is_dynamic) {
  if (is_dynamic) return 2 * rank;
  return rank == 1 ? 0 : rank;
}

/// A tensor without memory of its own: the caller's input or output, or the result of a view.
bool is_unbound(const fbs::Tensor& tensor);

bool is_constant(const fbs::Tensor& tensor);

/// Where a planned tensor lies in its arena.
uint64_t offset_of(const fbs::AllocationDetails& place);

/// Where the initial value of a planned tensor lies, among the mutable data segments.
uint64_t initial_segment_of(const fbs::Tensor& tensor);

/// Elements and bytes at the stored sizes, which were verified not to overflow.
intptr_t numel_of(const fbs::Tensor& tensor);
size_t nbytes_of(const fbs::Tensor& tensor);

}  // namespace etx

#endif  // ETX_NATIVE_CORE_FORMAT_H_
