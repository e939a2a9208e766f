// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_FORMAT_H_
#define ETX_NATIVE_CORE_FORMAT_H_

// The generated readers of program.fbs, and null-safe access: every field may be absent.

#include <cstring>

#define FLATBUFFERS_ASSERT(condition) static_cast<void>(0)
#include <program_generated.h>

#include <etx/error.h>
#include <etx/tensor.h>

namespace etx {

namespace fbs = ::etx_fbs;

template <typename T>
using FbVector = ::flatbuffers::Vector<T>;
template <typename T>
using FbTables = ::flatbuffers::Vector<::flatbuffers::Offset<T>>;

/// Items of a vector, whatever it holds; 0 when it is absent. This and the other functions without
/// `inline` are calls for the sake of code size.
size_t length(const void* vector);

/// Table `index` of a vector of tables.
const void* table_at(const void* tables, size_t index);

template <typename T>
inline const T& at(const FbTables<T>* tables, size_t index) {
  return *static_cast<const T*>(table_at(tables, index));
}

inline const char* text(const ::flatbuffers::String* string) {
  return string == nullptr ? nullptr : string->c_str();
}

bool equals(const ::flatbuffers::String* string, const char* other);

inline const fbs::ExecutionPlan* as_plan(const void* plan) {
  return static_cast<const fbs::ExecutionPlan*>(plan);
}

inline const FbTables<fbs::Instruction>* instructions_of(const fbs::ExecutionPlan& plan) {
  return length(plan.chains()) == 0 ? nullptr : at(plan.chains(), 0).instructions();
}

const fbs::EValue& stored_value(const fbs::ExecutionPlan& plan, size_t index);

/// Of an index that was verified, whatever type the file has for it.
template <typename Index>
inline const fbs::EValue& value_at(const fbs::ExecutionPlan& plan, Index index) {
  return stored_value(plan, static_cast<size_t>(index));
}

/// Null when the value is no tensor.
const fbs::Tensor* tensor_of(const fbs::ExecutionPlan& plan, size_t value);

inline ScalarType scalar_type_of(const fbs::Tensor& tensor) {
  return static_cast<ScalarType>(static_cast<int8_t>(tensor.scalar_type()));
}

bool is_external(const fbs::Tensor& tensor);

inline bool is_dynamic(const fbs::Tensor& tensor) {
  return tensor.shape_dynamism() != fbs::TensorShapeDynamism::STATIC;
}

/// A tensor without memory of its own: the caller's input or output, or the result of a view.
bool is_unbound(const fbs::Tensor& tensor);

bool is_constant(const fbs::Tensor& tensor);

/// Elements and bytes at the stored sizes, which were verified not to overflow.
int64_t numel_of(const fbs::Tensor& tensor);
size_t nbytes_of(const fbs::Tensor& tensor);

}  // namespace etx

#endif  // ETX_NATIVE_CORE_FORMAT_H_
