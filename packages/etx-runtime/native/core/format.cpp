// SPDX-License-Identifier: BSD-3-Clause
#include "format.h"

namespace etx {

size_t length(const void* vector) {
  return vector == nullptr ? 0 : static_cast<const FbVector<uint8_t>*>(vector)->size();
}

const void* table_at(const void* tables, size_t index) {
  return static_cast<const FbTables<fbs::Null>*>(tables)->Get(static_cast<uint32_t>(index));
}

bool equals(const ::flatbuffers::String* string, const char* other) {
  return string != nullptr && string->size() == std::strlen(other) &&
         std::memcmp(string->data(), other, string->size()) == 0;
}

const fbs::EValue& stored_value(const fbs::ExecutionPlan& plan, size_t index) {
  return at(plan.values(), index);
}

const fbs::Tensor* tensor_of(const fbs::ExecutionPlan& plan, size_t value) {
  return value_at(plan, value).val_as_Tensor();
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

int64_t numel_of(const fbs::Tensor& tensor) {
  int64_t numel = 1;
  for (size_t i = 0; i < length(tensor.sizes()); ++i) {
    numel *= tensor.sizes()->Get(static_cast<uint32_t>(i));
  }
  return numel;
}

size_t nbytes_of(const fbs::Tensor& tensor) {
  return static_cast<size_t>(numel_of(tensor)) * element_size(scalar_type_of(tensor));
}

}  // namespace etx
