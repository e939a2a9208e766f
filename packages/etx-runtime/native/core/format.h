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

template <typename Vector>
inline size_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

inline const char* text(const ::flatbuffers::String* string) {
  return string == nullptr ? nullptr : string->c_str();
}

inline bool equals(const ::flatbuffers::String* string, const char* other) {
  return string != nullptr && string->size() == std::strlen(other) &&
         std::memcmp(string->data(), other, string->size()) == 0;
}

inline const fbs::ExecutionPlan* as_plan(const void* plan) {
  return static_cast<const fbs::ExecutionPlan*>(plan);
}

inline const FbTables<fbs::Instruction>* instructions_of(const fbs::ExecutionPlan& plan) {
  return length(plan.chains()) == 0 ? nullptr : plan.chains()->Get(0)->instructions();
}

inline const fbs::Tensor* tensor_of(const fbs::ExecutionPlan& plan, size_t value) {
  return plan.values()->Get(static_cast<uint32_t>(value))->val_as_Tensor();
}

inline ScalarType scalar_type_of(const fbs::Tensor& tensor) {
  return static_cast<ScalarType>(static_cast<int8_t>(tensor.scalar_type()));
}

inline bool is_external(const fbs::Tensor& tensor) {
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  return extra != nullptr && extra->location() == fbs::TensorDataLocation::EXTERNAL;
}

inline bool is_dynamic(const fbs::Tensor& tensor) {
  return tensor.shape_dynamism() != fbs::TensorShapeDynamism::STATIC;
}

/// A tensor without memory of its own: the caller's input or output, or the result of a view.
inline bool is_unbound(const fbs::Tensor& tensor) {
  return tensor.allocation_info() == nullptr && tensor.data_buffer_idx() == 0 &&
         !is_external(tensor);
}

inline bool is_constant(const fbs::Tensor& tensor) {
  return tensor.allocation_info() == nullptr && !is_unbound(tensor);
}

/// Elements at the stored sizes, which were verified not to overflow.
inline int64_t numel_of(const fbs::Tensor& tensor) {
  int64_t numel = 1;
  for (size_t i = 0; i < length(tensor.sizes()); ++i) {
    numel *= tensor.sizes()->Get(static_cast<uint32_t>(i));
  }
  return numel;
}

inline size_t nbytes_of(const fbs::Tensor& tensor) {
  return static_cast<size_t>(numel_of(tensor)) * element_size(scalar_type_of(tensor));
}

}  // namespace etx

#endif  // ETX_NATIVE_CORE_FORMAT_H_
