// SPDX-License-Identifier: BSD-3-Clause
#include <etx/method_meta.h>

#include "format.h"
#include "layout.h"

namespace etx {
namespace {

/// A mutable buffer is a named tensor in planned memory.
bool is_attribute(const fbs::EValue& value) {
  const fbs::Tensor* tensor = value.val_as_Tensor();
  return tensor != nullptr && !is_constant(*tensor) && tensor->extra_tensor_info() != nullptr &&
         tensor->extra_tensor_info()->fully_qualified_name() != nullptr;
}

bool is_outside(const fbs::EValue& value) {
  const fbs::Tensor* tensor = value.val_as_Tensor();
  return tensor != nullptr && is_external(*tensor);
}

Result<int32_t> item(const FbVector<int32_t>* list, size_t index) {
  if (index >= length(list)) return Error::InvalidArgument;
  return list->Get(static_cast<uint32_t>(index));
}

}  // namespace

TensorInfo::TensorInfo(const void* raw) {
  const fbs::Tensor& tensor = *static_cast<const fbs::Tensor*>(raw);
  if (length(tensor.sizes()) != 0) {
    sizes_ = {tensor.sizes()->data(), tensor.sizes()->size()};
    dim_order_ = {tensor.dim_order()->data(), tensor.dim_order()->size()};
  }
  nbytes_ = nbytes_of(tensor);
  scalar_type_ = scalar_type_of(tensor);
  dynamism_ = static_cast<TensorShapeDynamism>(tensor.shape_dynamism());
  is_planned_ = tensor.allocation_info() != nullptr;
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  if (extra != nullptr && extra->fully_qualified_name() != nullptr) {
    name_ = {extra->fully_qualified_name()->c_str(), extra->fully_qualified_name()->size()};
  }
}

const char* MethodMeta::name() const { return text(as_plan(plan_)->name()); }

size_t MethodMeta::num_inputs() const { return length(as_plan(plan_)->inputs()); }

size_t MethodMeta::num_outputs() const { return length(as_plan(plan_)->outputs()); }

Result<Tag> MethodMeta::input_tag(size_t index) const {
  ETX_ASSIGN(const int32_t value, item(as_plan(plan_)->inputs(), index));
  return tag_of(value_at(*as_plan(plan_), value));
}

Result<Tag> MethodMeta::output_tag(size_t index) const {
  ETX_ASSIGN(const int32_t value, item(as_plan(plan_)->outputs(), index));
  return tag_of(value_at(*as_plan(plan_), value));
}

Result<TensorInfo> MethodMeta::tensor_info(int32_t value) const {
  const fbs::Tensor* tensor = tensor_of(*as_plan(plan_), static_cast<size_t>(value));
  if (tensor == nullptr) return Error::InvalidArgument;
  return TensorInfo(tensor);
}

Result<TensorInfo> MethodMeta::input_tensor_meta(size_t index) const {
  ETX_ASSIGN(const int32_t value, item(as_plan(plan_)->inputs(), index));
  return tensor_info(value);
}

Result<TensorInfo> MethodMeta::output_tensor_meta(size_t index) const {
  ETX_ASSIGN(const int32_t value, item(as_plan(plan_)->outputs(), index));
  return tensor_info(value);
}

size_t MethodMeta::num_attributes() const {
  size_t count = 0;
  const auto* values = as_plan(plan_)->values();
  for (uint32_t i = 0; i < length(values); ++i) count += is_attribute(at(values, i)) ? 1u : 0u;
  return count;
}

Result<TensorInfo> MethodMeta::attribute_tensor_meta(size_t index) const {
  const auto* values = as_plan(plan_)->values();
  for (uint32_t i = 0; i < length(values); ++i) {
    if (is_attribute(at(values, i)) && index-- == 0) {
      return TensorInfo(at(values, i).val_as_Tensor());
    }
  }
  return Error::InvalidArgument;
}

size_t MethodMeta::num_external_tensors() const {
  const auto* values = as_plan(plan_)->values();
  size_t count = 0;
  for (uint32_t i = 0; i < length(values); ++i) count += is_outside(at(values, i)) ? 1u : 0u;
  return count;
}

Result<TensorInfo> MethodMeta::external_tensor_meta(size_t index) const {
  const auto* values = as_plan(plan_)->values();
  for (uint32_t i = 0; i < length(values); ++i) {
    if (is_outside(at(values, i)) && index-- == 0) {
      return TensorInfo(at(values, i).val_as_Tensor());
    }
  }
  return Error::InvalidArgument;
}

size_t MethodMeta::num_memory_planned_buffers() const {
  const size_t count = length(as_plan(plan_)->non_const_buffer_sizes());
  return count == 0 ? 0 : count - 1;
}

Result<size_t> MethodMeta::memory_planned_buffer_size(size_t index) const {
  if (index >= num_memory_planned_buffers()) return Error::InvalidArgument;
  const auto* sizes = as_plan(plan_)->non_const_buffer_sizes();
  return static_cast<size_t>(sizes->Get(static_cast<uint32_t>(index + 1)));
}

size_t MethodMeta::num_backends() const { return length(as_plan(plan_)->delegates()); }

Result<const char*> MethodMeta::get_backend_name(size_t index) const {
  if (index >= num_backends()) return Error::InvalidArgument;
  return text(at(as_plan(plan_)->delegates(), index).id());
}

bool MethodMeta::uses_backend(const char* backend_name) const {
  for (uint32_t i = 0; i < num_backends(); ++i) {
    if (equals(at(as_plan(plan_)->delegates(), i).id(), backend_name)) return true;
  }
  return false;
}

size_t MethodMeta::num_operators() const { return length(as_plan(plan_)->operators()); }

Result<MethodMeta::OperatorName> MethodMeta::operator_name(size_t index) const {
  if (index >= num_operators()) return Error::InvalidArgument;
  const fbs::Operator& op = at(as_plan(plan_)->operators(), index);
  const char* overload = text(op.overload());
  return OperatorName{text(op.name()), overload == nullptr ? "" : overload};
}

size_t MethodMeta::num_instructions() const { return length(instructions_of(*as_plan(plan_))); }

const char* MethodMeta::input_spec() const {
  const fbs::ContainerMetadata* spec = as_plan(plan_)->container_meta_type();
  return spec == nullptr ? nullptr : text(spec->encoded_inp_str());
}

const char* MethodMeta::output_spec() const {
  const fbs::ContainerMetadata* spec = as_plan(plan_)->container_meta_type();
  return spec == nullptr ? nullptr : text(spec->encoded_out_str());
}

size_t MethodMeta::required_bytes() const {
  return Layout(*as_plan(plan_)).total_bytes() + MemoryAllocator::kDefaultAlignment;
}

}  // namespace etx
