// SPDX-License-Identifier: BSD-3-Clause
#include "verify.h"

namespace etx {

Error Verifier::check_values() {
  for (uint32_t i = 0; i < counts_[kValues]; ++i) {
    const fbs::EValue& value = value_at(*plan_, i);
    where_ = &value;
    index_ = static_cast<int32_t>(i);
    if (value.val() == nullptr) return fail("a value is empty");
    ETX_TRY(check_value(value));
  }
  return Error::Ok;
}

Error Verifier::check_value(const fbs::EValue& value) {
  const fbs::KernelTypes kind = value.val_type();
  if (kind == fbs::KernelTypes::NONE || kind > fbs::KernelTypes::MAX) {
    return fail("a value of an unknown kind", Error::NotSupported);
  }
  if (kind == fbs::KernelTypes::Tensor) return check_tensor(*as_tensor(value));
  if (kind == fbs::KernelTypes::String && contents_of(value) == nullptr) {
    return fail("a string value has no text");
  }
  return kind > fbs::KernelTypes::String ? check_list(value) : Error::Ok;
}

Error Verifier::check_list(const fbs::EValue& value) {
  const fbs::KernelTypes kind = value.val_type();
  const void* items = contents_of(value);
  for (uint32_t i = 0; i < length(items); ++i) {
    if (kind == fbs::KernelTypes::BoolList) {
      if (static_cast<const FbVector<uint8_t>*>(items)->Get(i) > 1) {
        return fail("a bool is neither 0 nor 1");
      }
    } else if (kind == fbs::KernelTypes::IntList) {
      const auto item = static_cast<uint64_t>(static_cast<const FbVector<int64_t>*>(items)->Get(i));
      if (!has(kValues, item) || kind_of(static_cast<uint32_t>(item)) != fbs::KernelTypes::Int) {
        return fail("an item of an int list is not an int value");
      }
    } else if (kind != fbs::KernelTypes::DoubleList) {
      const int32_t item = static_cast<const FbVector<int32_t>*>(items)->Get(i);
      const bool optional = kind == fbs::KernelTypes::OptionalTensorList;
      if (optional && item == -1) continue;
      const auto index = static_cast<uint32_t>(item);
      if (!has(kValues, index))
        return fail("an item of a tensor list is not a value of the method");
      const fbs::KernelTypes type = kind_of(index);
      if (type != fbs::KernelTypes::Tensor && !(optional && type == fbs::KernelTypes::Null)) {
        return fail("an item of a tensor list is not a tensor");
      }
    }
  }
  return Error::Ok;
}

Error Verifier::check_tensor(const fbs::Tensor& tensor) {
  where_ = &tensor;
  if (!is_valid(scalar_type_of(tensor))) return fail("a tensor has an unknown dtype");
  if (tensor.storage_offset() != 0) {
    return fail("a tensor has a storage offset", Error::NotSupported);
  }
  if (tensor.layout() != 0) return fail("a tensor is not strided", Error::NotSupported);
  const fbs::TensorShapeDynamism dynamism = tensor.shape_dynamism();
  if (dynamism > fbs::TensorShapeDynamism::DYNAMIC_BOUND) {
    const bool is_known = dynamism == fbs::TensorShapeDynamism::DYNAMIC_UNBOUND;
    return fail(
        is_known ? "a tensor has a shape without bounds" : "a tensor has an unknown kind of shape",
        Error::NotSupported);
  }
  const fbs::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  if (extra != nullptr && extra->device_type() != fbs::DeviceType::CPU) {
    return fail("a tensor is on another device than the CPU", Error::NotSupported);
  }
  ETX_TRY(check_shape(tensor));
  return check_memory(tensor);
}

Error Verifier::check_shape(const fbs::Tensor& tensor) {
  const size_t rank = length(tensor.sizes());
  if (rank > kMaxRank) return fail("a tensor has more than 16 dimensions");
  if (length(tensor.dim_order()) != rank) {
    return fail("a tensor's dim order and sizes differ in length");
  }
  uint32_t seen = 0;
  uint64_t extent = 1;
  for (size_t i = rank; i-- > 0;) {
    const uint8_t dim = tensor.dim_order()->Get(static_cast<uint32_t>(i));
    if (dim >= rank || (seen >> dim & 1) != 0) {
      return fail("a tensor's dim order is not a permutation");
    }
    seen |= 1u << dim;
    const int32_t size = tensor.sizes()->Get(dim);
    if (size < 0) return fail("a tensor has a negative size");
    if (extent > INT32_MAX) return fail("a tensor's strides overflow");
    extent *= size == 0 ? 1 : static_cast<uint32_t>(size);
  }
  if (extent > PTRDIFF_MAX || static_cast<size_t>(extent) > PTRDIFF_MAX / element_size_of(tensor)) {
    return fail("a tensor is larger than the address space");
  }
  return Error::Ok;
}

Error Verifier::check_memory(const fbs::Tensor& tensor) {
  const fbs::AllocationDetails* place = tensor.allocation_info();
  if (place != nullptr) {
    const uint32_t id = place->memory_id();
    const auto* sizes = plan_->non_const_buffer_sizes();
    if (id == 0 || id >= length(sizes)) {
      return fail("a tensor lies in an arena that does not exist");
    }
    if (!fits(offset_of(*place), nbytes_of(tensor), static_cast<size_t>(sizes->Get(id)))) {
      return fail("a tensor ends after its arena");
    }
    if ((place->memory_offset_low() & (alignment_of(tensor) - 1)) != 0) {
      return fail("a tensor is not aligned to its elements");
    }
  }
  if (is_external(tensor)) {
    const bool has_name = tensor.extra_tensor_info()->fully_qualified_name() != nullptr;
    return has_name ? Error::Ok : fail("an external tensor has no name");
  }
  const uint32_t index = tensor.data_buffer_idx();
  if (index == 0) return Error::Ok;
  if (place != nullptr) {
    const uint64_t segment = initial_segment_of(tensor);
    if (segment >= length(program_.mutable_data_segments())) {
      return fail("a tensor's initial value has no segment");
    }
    return check_stored(&at(program_.mutable_data_segments(), static_cast<size_t>(segment)),
                        tensor);
  }
  const auto* buffers = program_.constant_buffer();
  if (length(buffers) == 0) return check_stored(program_.constant_segment(), tensor);
  if (index >= length(buffers) || length(at(buffers, index).storage()) < nbytes_of(tensor)) {
    return fail("a constant is smaller than its tensor");
  }
  return Error::Ok;
}

Error Verifier::check_stored(const fbs::SubsegmentOffsets* subsegment, const fbs::Tensor& tensor) {
  const uint32_t index = tensor.data_buffer_idx();
  const auto* offsets = subsegment == nullptr ? nullptr : subsegment->offsets();
  if (index >= length(offsets)) return fail("a tensor's stored data does not exist");
  const auto size =
      static_cast<size_t>(at(program_.segments(), subsegment->segment_index()).size());
  if (!fits(offsets->Get(index), nbytes_of(tensor), size)) {
    return fail("a tensor's stored data ends after its segment");
  }
  return Error::Ok;
}

}  // namespace etx
