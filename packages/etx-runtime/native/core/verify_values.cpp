// SPDX-License-Identifier: BSD-3-Clause
#include "verify.h"

namespace etx {

Error Verifier::check_values(const fbs::ExecutionPlan& plan) {
  if (length(plan.values()) > INT32_MAX) return fail("too many values", &plan);
  for (uint32_t i = 0; i < length(plan.values()); ++i) {
    const fbs::EValue& value = value_at(plan, i);
    if (value.val() == nullptr) {
      return fail("a value is empty", &value, Error::InvalidProgram, i);
    }
    ETX_TRY(check_value(plan, value));
  }
  return Error::Ok;
}

Error Verifier::check_value(const fbs::ExecutionPlan& plan, const fbs::EValue& value) {
  switch (value.val_type()) {
    case fbs::KernelTypes::Null:
    case fbs::KernelTypes::Int:
    case fbs::KernelTypes::Bool:
    case fbs::KernelTypes::Double:
    case fbs::KernelTypes::DoubleList: return Error::Ok;
    case fbs::KernelTypes::Tensor: return check_tensor(plan, *value.val_as_Tensor());
    case fbs::KernelTypes::String:
      return value.val_as_String()->string_val() != nullptr
                 ? Error::Ok
                 : fail("a string value has no text", &value);
    case fbs::KernelTypes::IntList: {
      const auto* items = value.val_as_IntList()->items();
      for (uint32_t i = 0; i < length(items); ++i) {
        const int64_t item = items->Get(i);
        if (!has_value(plan, item) || value_at(plan, item).val_as_Int() == nullptr) {
          return fail("an item of an int list is no int value", &value);
        }
      }
      return Error::Ok;
    }
    case fbs::KernelTypes::BoolList: {
      const auto* items = value.val_as_BoolList()->items();
      for (uint32_t i = 0; i < length(items); ++i) {
        if (items->data()[i] > 1) return fail("a bool is neither 0 nor 1", &value);
      }
      return Error::Ok;
    }
    case fbs::KernelTypes::TensorList:
      return check_tensor_list(plan, value.val_as_TensorList()->items(), false);
    case fbs::KernelTypes::OptionalTensorList:
      return check_tensor_list(plan, value.val_as_OptionalTensorList()->items(), true);
    default: return fail("a value of an unknown kind", &value, Error::NotSupported);
  }
}

Error Verifier::check_tensor_list(const fbs::ExecutionPlan& plan, const FbVector<int32_t>* items,
                                  bool optional) {
  for (uint32_t i = 0; i < length(items); ++i) {
    const int32_t item = items->Get(i);
    if (optional && item == -1) continue;
    if (!has_value(plan, item)) return fail("an item of a tensor list is no value", items);
    const fbs::EValue& value = value_at(plan, item);
    const bool fits = value.val_type() == fbs::KernelTypes::Tensor ||
                      (optional && value.val_type() == fbs::KernelTypes::Null);
    if (!fits) return fail("an item of a tensor list is no tensor", items);
  }
  return Error::Ok;
}

Error Verifier::check_tensor(const fbs::ExecutionPlan& plan, const fbs::Tensor& tensor) {
  if (!is_valid(scalar_type_of(tensor))) return fail("a tensor has an unknown dtype", &tensor);
  if (tensor.storage_offset() != 0) {
    return fail("a tensor has a storage offset", &tensor, Error::NotSupported);
  }
  if (tensor.layout() != 0) return fail("a tensor is not strided", &tensor, Error::NotSupported);
  const auto dynamism = tensor.shape_dynamism();
  if (dynamism == fbs::TensorShapeDynamism::DYNAMIC_UNBOUND) {
    return fail("a tensor has a shape without bounds", &tensor, Error::NotSupported);
  }
  if (dynamism != fbs::TensorShapeDynamism::STATIC &&
      dynamism != fbs::TensorShapeDynamism::DYNAMIC_BOUND) {
    return fail("a tensor has an unknown kind of shape", &tensor);
  }
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  if (extra != nullptr && extra->device_type() != fbs::DeviceType::CPU) {
    return fail("a tensor is on another device than the CPU", &tensor, Error::NotSupported);
  }
  ETX_TRY(check_shape(tensor));
  return check_memory(plan, tensor);
}

Error Verifier::check_shape(const fbs::Tensor& tensor) {
  const size_t rank = length(tensor.sizes());
  if (rank > kMaxRank) return fail("a tensor has more than 16 dimensions", &tensor);
  if (length(tensor.dim_order()) != rank) {
    return fail("a tensor's dim order and sizes differ in length", &tensor);
  }
  uint32_t seen = 0;
  int64_t extent = 1;
  for (size_t i = rank; i-- > 0;) {
    const uint8_t dim = tensor.dim_order()->Get(static_cast<uint32_t>(i));
    if (dim >= rank || (seen >> dim & 1) != 0) {
      return fail("a tensor's dim order is no permutation", &tensor);
    }
    seen |= 1u << dim;
    const int32_t size = tensor.sizes()->Get(dim);
    if (size < 0) return fail("a tensor has a negative size", &tensor);
    if (extent > INT32_MAX) return fail("a tensor's strides overflow", &tensor);
    extent *= size == 0 ? 1 : size;
  }
  const auto bytes = static_cast<uint64_t>(element_size(scalar_type_of(tensor)));
  if (static_cast<uint64_t>(extent) > PTRDIFF_MAX / bytes) {
    return fail("a tensor is larger than the address space", &tensor);
  }
  return Error::Ok;
}

Error Verifier::check_memory(const fbs::ExecutionPlan& plan, const fbs::Tensor& tensor) {
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  const fbs::AllocationDetails* place = tensor.allocation_info();
  if (place != nullptr) {
    const uint32_t id = place->memory_id();
    if (id == 0 || id >= length(plan.non_const_buffer_sizes())) {
      return fail("a tensor lies in an arena that does not exist", &tensor);
    }
    const auto size = static_cast<uint64_t>(plan.non_const_buffer_sizes()->Get(id));
    const uint64_t offset =
        static_cast<uint64_t>(place->memory_offset_high()) << 32 | place->memory_offset_low();
    if (offset > size || nbytes_of(tensor) > size - offset) {
      return fail("a tensor ends after its arena", &tensor);
    }
    const size_t element = element_size(scalar_type_of(tensor));
    if (offset % (element < 8 ? element : 8) != 0) {
      return fail("a tensor is not aligned to its elements", &tensor);
    }
  }
  if (is_external(tensor)) {
    return extra->fully_qualified_name() != nullptr
               ? Error::Ok
               : fail("an external tensor has no name", &tensor);
  }
  const uint32_t index = tensor.data_buffer_idx();
  if (index == 0) return Error::Ok;
  if (place != nullptr) {
    const uint64_t segment = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
    if (segment >= length(program_.mutable_data_segments())) {
      return fail("a tensor's initial value has no segment", &tensor);
    }
    return check_stored(&at(program_.mutable_data_segments(), static_cast<size_t>(segment)), index,
                        tensor);
  }
  if (length(program_.constant_buffer()) > 0) {
    if (index >= program_.constant_buffer()->size() ||
        length(at(program_.constant_buffer(), index).storage()) < nbytes_of(tensor)) {
      return fail("a constant is smaller than its tensor", &tensor);
    }
    return Error::Ok;
  }
  return check_stored(program_.constant_segment(), index, tensor);
}

Error Verifier::check_stored(const fbs::SubsegmentOffsets* offsets, uint64_t index,
                             const fbs::Tensor& tensor) {
  if (offsets == nullptr || index >= length(offsets->offsets())) {
    return fail("a tensor's stored data does not exist", &tensor);
  }
  const uint64_t size = at(program_.segments(), offsets->segment_index()).size();
  const uint64_t offset = offsets->offsets()->Get(static_cast<uint32_t>(index));
  if (nbytes_of(tensor) > size - offset) {
    return fail("a tensor's stored data ends after its segment", &tensor);
  }
  return Error::Ok;
}

}  // namespace etx
