// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "method_loader.h"

namespace etx {

Error MethodLoader::build_values() {
  size_t num_tensors = 0;
  for (uint32_t i = 0; i < state_->values.size(); ++i) {
    const fbs::EValue& stored = value_at(plan_, i);
    EValue& value = state_->values[i];
    switch (stored.val_type()) {
      case fbs::KernelTypes::Int: value.set(stored.val_as_Int()->int_val()); break;
      case fbs::KernelTypes::Bool: value.set(stored.val_as_Bool()->bool_val()); break;
      case fbs::KernelTypes::Double: value.set(stored.val_as_Double()->double_val()); break;
      case fbs::KernelTypes::Tensor: {
        TensorImpl* tensor = &tensors_[num_tensors++];
        ETX_TRY(build_tensor(*stored.val_as_Tensor(), tensor));
        value.payload.as_tensor = tensor;
        value.etx_value::tag = ETX_TAG_TENSOR;
        break;
      }
      case fbs::KernelTypes::String: {
        const auto* string = stored.val_as_String()->string_val();
        value.payload.as_string = string->c_str();
        value.count = string->size();
        value.etx_value::tag = ETX_TAG_STRING;
        break;
      }
      case fbs::KernelTypes::DoubleList: {
        const auto* items = stored.val_as_DoubleList()->items();
        value.payload.as_double_list = items == nullptr ? nullptr : items->data();
        value.count = static_cast<uint32_t>(length(items));
        value.etx_value::tag = ETX_TAG_LIST_DOUBLE;
        break;
      }
      case fbs::KernelTypes::BoolList: {
        const auto* items = stored.val_as_BoolList()->items();
        value.payload.as_bool_list =
            items == nullptr ? nullptr : reinterpret_cast<const bool*>(items->data());
        value.count = static_cast<uint32_t>(length(items));
        value.etx_value::tag = ETX_TAG_LIST_BOOL;
        break;
      }
      case fbs::KernelTypes::IntList: build_int_list(*stored.val_as_IntList(), &value); break;
      case fbs::KernelTypes::TensorList:
        build_tensor_list(stored.val_as_TensorList()->items(), Tag::ListTensor, &value);
        break;
      case fbs::KernelTypes::OptionalTensorList:
        build_tensor_list(stored.val_as_OptionalTensorList()->items(), Tag::ListOptionalTensor,
                          &value);
        break;
      default: break;
    }
  }
  return Error::Ok;
}

void MethodLoader::build_int_list(const fbs::IntList& stored, EValue* value) {
  const size_t count = length(stored.items());
  etx_int_list* list = int_lists_.data();
  int_lists_ = int_lists_.subspan(1, int_lists_.size() - 1);
  list->items = items_.data();
  items_ = items_.subspan(count, items_.size() - count);
  bool is_constant = true;
  for (uint32_t i = 0; i < count; ++i) {
    const auto index = static_cast<uint32_t>(stored.items()->Get(i));
    list->items[i] = value_at(plan_, index).val_as_Int()->int_val();
    slots_[i] = &state_->values[index];
    is_constant &= (flags_[index] & kWritten) == 0;
  }
  if (!is_constant) {
    list->boxed = slots_.data();
    slots_ = slots_.subspan(count, slots_.size() - count);
  }
  value->payload.as_int_list = list;
  value->count = static_cast<uint32_t>(count);
  value->etx_value::tag = ETX_TAG_LIST_INT;
}

void MethodLoader::build_tensor_list(const FbVector<int32_t>* items, Tag tag, EValue* value) {
  const size_t count = length(items);
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t index = items->Get(i);
    slots_[i] = index < 0 ? nullptr : &state_->values[static_cast<uint32_t>(index)];
  }
  value->payload.as_tensor_list = slots_.data();
  value->count = static_cast<uint32_t>(count);
  value->etx_value::tag = static_cast<uint32_t>(tag);
  slots_ = slots_.subspan(count, slots_.size() - count);
}

Error MethodLoader::build_tensor(const fbs::Tensor& stored, TensorImpl* tensor) {
  const size_t rank = length(stored.sizes());
  tensor->dtype = static_cast<int8_t>(stored.scalar_type());
  tensor->rank = static_cast<uint8_t>(rank);
  tensor->dynamism = static_cast<uint8_t>(stored.shape_dynamism());
  tensor->numel = tensor->capacity = numel_of(stored);
  tensor->strides = dims_.data();
  dims_ = dims_.subspan(rank, dims_.size() - rank);
  if (rank != 0) {
    tensor->sizes = const_cast<int32_t*>(stored.sizes()->data());
    tensor->dim_order = stored.dim_order()->data();
  }
  if (is_dynamic(stored)) {
    for (size_t i = 0; i < rank; ++i) dims_[i] = tensor->sizes[i];
    tensor->sizes = dims_.data();
    dims_ = dims_.subspan(rank, dims_.size() - rank);
  }
  Tensor::set_strides(*tensor);
  if (is_unbound(stored)) {
    tensor->flags = kUnbound;
    return Error::Ok;
  }
  if (is_constant(stored)) tensor->flags = ETX_TENSOR_CONSTANT;
  ETX_ASSIGN(tensor->data, data_of(stored));
  const size_t element = element_size(scalar_type_of(stored));
  const size_t alignment = element < 8 ? element : 8;
  if (tensor->numel != 0 && reinterpret_cast<uintptr_t>(tensor->data) % alignment != 0) {
    return fail(Error::InvalidProgram, "a tensor is not aligned to its elements", &stored);
  }
  return Error::Ok;
}

Result<void*> MethodLoader::data_of(const fbs::Tensor& stored) {
  const void* data = nullptr;
  if (is_external(stored)) {
    const char* reason = "the program's weights are in a .ptd file that was not given";
    auto bytes = find_external_ == nullptr ? Result<Span<const uint8_t>>(Error::InvalidExternalData)
                                           : find_external_(*data_, &stored, &reason);
    if (!bytes.ok()) {
      Failure failure;
      failure.error = bytes.error();
      failure.reason = reason;
      failure.name = text(stored.extra_tensor_info()->fully_qualified_name());
      return report(failures_, failure);
    }
    data = bytes->data();
  } else if (stored.allocation_info() == nullptr) {
    const fbs::Program& root = *static_cast<const fbs::Program*>(program_.root_);
    const uint32_t index = stored.data_buffer_idx();
    if (length(root.constant_buffer()) > 0) {
      const auto* storage = at(root.constant_buffer(), index).storage();
      data = storage == nullptr ? nullptr : storage->data();
    } else {
      data = program_.constants_.bytes() + root.constant_segment()->offsets()->Get(index);
    }
  }
  const size_t size = nbytes_of(stored);
  if (size == 0) return static_cast<void*>(flags_.data());
  const fbs::AllocationDetails* place = stored.allocation_info();
  if (place == nullptr) return const_cast<void*>(data);
  const uint64_t offset =
      static_cast<uint64_t>(place->memory_offset_high()) << 32 | place->memory_offset_low();
  return memory_->planned_memory()->get_offset_address(place->memory_id() - 1,
                                                       static_cast<size_t>(offset), size);
}

}  // namespace etx
