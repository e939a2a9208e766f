// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "method_loader.h"

namespace etx {
namespace {

/// The stride of each static vector, which nobody changes.
constexpr int32_t kVectorStride = 1;

}  // namespace

EValue initial_value(const fbs::EValue& stored) {
  EValue value;
  value.etx_value::tag = static_cast<uint32_t>(tag_of(stored));
  switch (value.tag()) {
    case Tag::Int: value.set(stored.val_as_Int()->int_val()); break;
    case Tag::Bool: value.set(stored.val_as_Bool()->bool_val()); break;
    case Tag::Double: value.set(stored.val_as_Double()->double_val()); break;
    default: {
      const auto* contents = static_cast<const FbVector<uint8_t>*>(contents_of(stored));
      value.count = static_cast<uint32_t>(length(contents));
      if (contents != nullptr) {
        value.payload.as_string = reinterpret_cast<const char*>(contents->data());
      }
    }
  }
  return value;
}

Error MethodLoader::build_values() {
  for (uint32_t i = 0; i < state_->values.size(); ++i) {
    const fbs::EValue& stored = value_at(plan_, i);
    EValue& value = state_->values[i];
    value = initial_value(stored);
    switch (value.tag()) {
      case Tag::Tensor:
        value.payload.as_tensor = tensors_++;
        ETX_TRY(build_tensor(*as_tensor(stored), value.payload.as_tensor));
        break;
      case Tag::ListInt:
      case Tag::ListTensor:
      case Tag::ListOptionalTensor: build_list(contents_of(stored), &value); break;
      default: break;
    }
  }
  return Error::Ok;
}

/// A list of integers is boxed until it is known that none of them changes.
void MethodLoader::build_list(const void* items, EValue* value) {
  if (value->tag() != Tag::ListInt) {
    value->payload.as_tensor_list = slots_;
    for (uint32_t i = 0; i < value->count; ++i) {
      const int32_t index = static_cast<const FbVector<int32_t>*>(items)->Get(i);
      *slots_++ = index < 0 ? nullptr : &state_->values[static_cast<size_t>(index)];
    }
    return;
  }
  value->payload.as_int_list = int_lists_++;
  *value->payload.as_int_list = {items_, slots_};
  for (uint32_t i = 0; i < value->count; ++i) {
    const auto index = static_cast<size_t>(static_cast<const FbVector<int64_t>*>(items)->Get(i));
    *items_++ = value_at(plan_, index).val_as_Int()->int_val();
    *slots_++ = &state_->values[index];
  }
}

uint8_t* MethodLoader::planned_address(const fbs::AllocationDetails& place) const {
  const Span<uint8_t> arena = request_.memory->planned_memory()->buffers()[place.memory_id() - 1];
  return arena.data() + static_cast<size_t>(offset_of(place));
}

Error MethodLoader::build_tensor(const fbs::Tensor& stored, TensorImpl* tensor) {
  const auto* sizes = stored.sizes();
  const size_t rank = length(sizes);
  tensor->dtype = static_cast<int8_t>(stored.scalar_type());
  tensor->rank = static_cast<uint8_t>(rank);
  tensor->dynamism = static_cast<uint8_t>(stored.shape_dynamism());
  tensor->numel = tensor->capacity = numel_of(stored);
  tensor->strides = dims_;
  if (rank != 0) {
    tensor->sizes = const_cast<int32_t*>(sizes->data());
    tensor->dim_order = stored.dim_order()->data();
  }
  dims_ += rank;
  if (is_dynamic(stored)) {
    for (size_t i = 0; i < rank; ++i) dims_[i] = tensor->sizes[i];
    tensor->sizes = dims_;
    dims_ += rank;
  } else if (rank == 1) {
    tensor->strides = const_cast<int32_t*>(&kVectorStride);
    --dims_;
  }
  if (tensor->strides != &kVectorStride) update_strides(*tensor);
  const fbs::AllocationDetails* place = stored.allocation_info();
  const bool unbound = is_unbound(stored);
  if (unbound) {
    tensor->flags = kUnbound;
  } else if (place == nullptr) {
    tensor->flags = ETX_TENSOR_CONSTANT;
    const void* data = nullptr;
    ETX_TRY(find_data(stored, &data));
    tensor->data = const_cast<void*>(data);
  }
  if (tensor->numel == 0) {
    if (!unbound) tensor->data = flags_;
  } else if (place != nullptr) {
    tensor->data = planned_address(*place);
  }
  if (tensor->numel != 0 &&
      (reinterpret_cast<uintptr_t>(tensor->data) & (alignment_of(stored) - 1)) != 0) {
    failure_.offset = reinterpret_cast<const uint8_t*>(&stored) - program_.program_data_.bytes();
    return fail(Error::InvalidProgram, "a tensor is not aligned to its elements");
  }
  if (state_->has_free || unbound) {
    state_->rebinds[num_rebinds_++] = {tensor, &stored, tensor->data, tensor->capacity, false};
  }
  return Error::Ok;
}

Error MethodLoader::find_data(const fbs::Tensor& stored, const void** data) {
  if (is_external(stored)) {
    const char* reason = "the program's weights are in a .ptd file that was not given";
    auto bytes = request_.find_external == nullptr
                     ? Result<Span<const uint8_t>>(Error::InvalidExternalData)
                     : request_.find_external(*request_.data, &stored, &reason);
    if (!bytes.ok()) {
      failure_.name = text(stored.extra_tensor_info()->fully_qualified_name());
      return fail(bytes.error(), reason);
    }
    *data = bytes->data();
    return Error::Ok;
  }
  const uint32_t index = stored.data_buffer_idx();
  const fbs::SubsegmentOffsets* subsegment = root().constant_segment();
  const FreeableBuffer* segment = &program_.constants_;
  if (stored.allocation_info() != nullptr) {
    const uint64_t which = initial_segment_of(stored);
    subsegment = &at(root().mutable_data_segments(), static_cast<size_t>(which));
    segment = &segment_;
    if (which != segment_index_) {
      const Error error = program_.load_segment(
          subsegment->segment_index(), DataLoader::SegmentInfo::Type::Mutable, nullptr, &segment_);
      if (error != Error::Ok) return fail(error, "the initial values cannot be read");
      segment_index_ = which;
    }
  } else if (length(root().constant_buffer()) > 0) {
    const auto* storage = at(root().constant_buffer(), index).storage();
    *data = storage == nullptr ? nullptr : storage->data();
    return Error::Ok;
  }
  *data = segment->bytes() + static_cast<size_t>(subsegment->offsets()->Get(index));
  return Error::Ok;
}

Error MethodLoader::write_initial_values() {
  for (uint32_t i = 0; i < state_->values.size(); ++i) {
    const fbs::Tensor* stored = tensor_of(plan_, i);
    if (stored == nullptr || stored->allocation_info() == nullptr) continue;
    if (stored->data_buffer_idx() == 0 && !is_external(*stored)) continue;
    const void* data = nullptr;
    ETX_TRY(find_data(*stored, &data));
    const size_t size = nbytes_of(*stored);
    if (size != 0) std::memmove(planned_address(*stored->allocation_info()), data, size);
  }
  return Error::Ok;
}

Error MethodLoader::reset_memory(MethodState* state, bool zero) {
  const detail::LoadRequest request = {
      nullptr, state->memory, nullptr, state->data, state->find_external,
      nullptr, nullptr,       nullptr, false};
  MethodLoader loader(*state->program, *state->plan, request);
  loader.state_ = state;
  if (zero) ETX_TRY(loader.prepare_arenas(true));
  return loader.write_initial_values();
}

}  // namespace etx
