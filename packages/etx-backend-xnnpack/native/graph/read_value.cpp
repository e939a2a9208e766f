// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>

#include <xnnpack_generated.h>

#include <etx/dtype.h>

#include "read.h"

namespace etx::xnnpack {
namespace {

namespace fbs = etx_fbs::xnnpack;

constexpr uint32_t kInputFlag = XNN_VALUE_FLAG_EXTERNAL_INPUT;
constexpr uint32_t kOutputFlag = XNN_VALUE_FLAG_EXTERNAL_OUTPUT;

xnn_datatype type_of(fbs::DataType type) {
  switch (type) {
    case fbs::DataType::FP32: return xnn_datatype_fp32;
    case fbs::DataType::FP16: return xnn_datatype_fp16;
    case fbs::DataType::QINT8: return xnn_datatype_qint8;
    case fbs::DataType::QUINT8: return xnn_datatype_quint8;
    case fbs::DataType::QINT32: return xnn_datatype_qint32;
    case fbs::DataType::QCINT8: return xnn_datatype_qcint8;
    case fbs::DataType::QCINT32: return xnn_datatype_qcint32;
    case fbs::DataType::QCINT4: return xnn_datatype_qcint4;
    case fbs::DataType::QDINT8: return xnn_datatype_qdint8;
    case fbs::DataType::QBINT4: return xnn_datatype_qbint4;
    case fbs::DataType::INT32: return xnn_datatype_int32;
    default: return xnn_datatype_invalid;
  }
}

Error read_tensor(const fbs::TensorValue& stored, Value* value) {
  value->id = stored.id();
  value->type = type_of(stored.dtype());
  value->external = kNone;
  value->producer = kNone;
  value->constant = stored.constant_index();
  if (value->type == xnn_datatype_invalid) {
    return fail(Error::NotSupported, "value %u: data type %d is not supported", value->id,
                static_cast<int>(stored.dtype()));
  }
  const size_t length = stored.sizes() == nullptr ? 0 : stored.sizes()->size();
  if (stored.rank() > kMaxRank || length != stored.rank()) {
    return fail(Error::InvalidProgram, "value %u: rank %u with %zu sizes, expected at most 6",
                value->id, stored.rank(), length);
  }
  value->shape.rank = stored.rank();
  size_t count = 1;
  for (uint32_t i = 0; i < stored.rank(); ++i) {
    const size_t size = stored.sizes()->Get(i);
    value->shape.sizes[i] = size;
    if (__builtin_mul_overflow(count, size, &count) || count > kMaxElements) {
      return fail(Error::InvalidProgram, "value %u: too many elements", value->id);
    }
  }
  const uint32_t flags = stored.flags();
  if ((flags & ~(kInputFlag | kOutputFlag)) != 0 || flags == (kInputFlag | kOutputFlag)) {
    return fail(Error::InvalidProgram, "value %u: unknown flags %u", value->id, flags);
  }
  value->is_input = flags == kInputFlag;
  value->is_output = flags == kOutputFlag;
  if (flags != 0) value->external = stored.external_id();
  if (flags != 0 && value->is_constant()) {
    return fail(Error::InvalidProgram, "value %u: external and constant", value->id);
  }
  return Error::Ok;
}

Error bind_constant(const Blob& blob, etx_init_context* context, Value* value) {
  size_t size = 0;
  ETX_TRY(find_constant(blob, context, value->constant, &value->data, &size));
  const size_t needed = size_of_constant(*value);
  if (size < needed) {
    return fail(Error::InvalidProgram, "value %u: its constant has %zu bytes, %s needs %zu",
                value->id, size, name_of(value->type), needed);
  }
  if (reinterpret_cast<uintptr_t>(value->data) % element_size(value->type) != 0) {
    return fail(Error::InvalidProgram, "value %u: its constant is not aligned", value->id);
  }
  return Error::Ok;
}

Error copy_aligned(etx_init_context* context, const void* data, size_t size, const void** aligned) {
  void* memory = context->allocate(context, size, alignof(float));
  if (memory == nullptr) {
    return fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of scales", size);
  }
  std::memcpy(memory, data, size);
  *aligned = memory;
  return Error::Ok;
}

/// Scales of the list of constants.
Error find_scales(const Blob& blob, etx_init_context* context, uint32_t index, size_t item,
                  Value* value) {
  const void* data = nullptr;
  size_t size = 0;
  ETX_TRY(find_constant(blob, context, index, &data, &size));
  if (size / item < value->num_scales) {
    return fail(Error::InvalidProgram, "value %u: %zu bytes hold no %u scales", value->id, size,
                value->num_scales);
  }
  value->scales = data;
  if (reinterpret_cast<uintptr_t>(data) % item == 0) return Error::Ok;
  return copy_aligned(context, data, value->num_scales * item, &value->scales);
}

Error round_scales(etx_init_context* context, const flatbuffers::Vector<float>& scales,
                   Value* value) {
  auto* rounded = static_cast<uint16_t*>(
      context->allocate(context, scales.size() * sizeof(uint16_t), alignof(uint16_t)));
  if (rounded == nullptr) {
    return fail(Error::MemoryAllocationFailed, "no memory for %u scales", scales.size());
  }
  for (uint32_t i = 0; i < scales.size(); ++i) rounded[i] = BFloat16(scales.Get(i)).bits;
  value->scales = rounded;
  return Error::Ok;
}

Error read_channels(const Blob& blob, etx_init_context* context, const fbs::PerChannel& stored,
                    Value* value) {
  const uint32_t channel = static_cast<uint32_t>(stored.channel_dim());
  if (channel >= value->shape.rank) {
    return fail(Error::InvalidProgram, "value %u: no dimension %d for channels", value->id,
                stored.channel_dim());
  }
  value->channel_dim = channel;
  if (stored.scale_index() != 0) {
    value->num_scales = stored.num_scales();
    ETX_TRY(find_scales(blob, context, stored.scale_index(), sizeof(float), value));
  } else if (stored.scale() != nullptr) {
    value->num_scales = stored.scale()->size();
    value->scales = stored.scale()->data();
  }
  if (value->num_scales != value->shape.sizes[channel]) {
    return fail(Error::InvalidProgram, "value %u: %u scales for %zu channels", value->id,
                value->num_scales, value->shape.sizes[channel]);
  }
  return Error::Ok;
}

Error read_groups(const Blob& blob, etx_init_context* context, const fbs::PerGroup& stored,
                  Value* value) {
  const size_t columns = value->shape.last();
  const auto group = static_cast<uint32_t>(stored.group_size());
  if (value->shape.rank != 2 || stored.channel_dim() != 0 || group == 0 ||
      group % XNN_MIN_BLOCKSIZE != 0 || columns % group != 0) {
    return fail(Error::InvalidProgram,
                "value %u: groups of %d in rows of %zu, expected a multiple of 32 that divides",
                value->id, stored.group_size(), columns);
  }
  value->group_size = group;
  if (stored.scale_index() != 0) {
    value->num_scales = stored.num_scales();
    ETX_TRY(find_scales(blob, context, stored.scale_index(), sizeof(uint16_t), value));
  } else if (stored.scale_bf16() != nullptr && stored.scale_bf16()->size() != 0) {
    value->num_scales = stored.scale_bf16()->size();
    value->scales = stored.scale_bf16()->data();
  } else if (stored.scale() != nullptr) {
    value->num_scales = stored.scale()->size();
    ETX_TRY(round_scales(context, *stored.scale(), value));
  }
  if (value->num_scales != value->shape.count() / group) {
    return fail(Error::InvalidProgram, "value %u: %u scales for %zu groups", value->id,
                value->num_scales, value->shape.count() / group);
  }
  return Error::Ok;
}

Error read_quantization(const Blob& blob, etx_init_context* context,
                        const fbs::QuantizedTensorValue& stored, Value* value) {
  if (stored.quantization() == nullptr) {
    return fail(Error::InvalidProgram, "value %u: its quantization is missing", value->id);
  }
  switch (stored.quantization_type()) {
    case fbs::Quantization::PerTensor: {
      value->scale = stored.quantization_as_PerTensor()->scale();
      value->zero_point = stored.quantization_as_PerTensor()->zero_point();
      if (std::isnormal(value->scale) && value->scale > 0) return Error::Ok;
      return fail(Error::InvalidProgram, "value %u: scale %g is not positive and finite", value->id,
                  static_cast<double>(value->scale));
    }
    case fbs::Quantization::PerChannel:
      return read_channels(blob, context, *stored.quantization_as_PerChannel(), value);
    case fbs::Quantization::PerGroup:
      return read_groups(blob, context, *stored.quantization_as_PerGroup(), value);
    case fbs::Quantization::PerRow: {
      const int32_t count = stored.quantization_as_PerRow()->num_nonbatch_dims();
      value->num_nonbatch = static_cast<uint32_t>(count);
      if (count > 0 && value->num_nonbatch <= value->shape.rank) return Error::Ok;
      return fail(Error::InvalidProgram, "value %u: %d dimensions share a scale, its rank is %u",
                  value->id, count, value->shape.rank);
    }
    default: return fail(Error::InvalidProgram, "value %u: unknown quantization", value->id);
  }
}

/// The quantization that a type must have.
fbs::Quantization quantization_of(xnn_datatype type) {
  switch (type) {
    case xnn_datatype_qint8:
    case xnn_datatype_quint8:
    case xnn_datatype_qint32: return fbs::Quantization::PerTensor;
    case xnn_datatype_qcint8:
    case xnn_datatype_qcint32:
    case xnn_datatype_qcint4: return fbs::Quantization::PerChannel;
    case xnn_datatype_qbint4: return fbs::Quantization::PerGroup;
    case xnn_datatype_qdint8: return fbs::Quantization::PerRow;
    default: return fbs::Quantization::NONE;
  }
}

bool is_weight(xnn_datatype type) {
  const fbs::Quantization quantization = quantization_of(type);
  return quantization == fbs::Quantization::PerChannel ||
         quantization == fbs::Quantization::PerGroup || type == xnn_datatype_qint32;
}

}  // namespace

Error read_value(const Blob& blob, etx_init_context* context, const fbs::Value& stored,
                 Value* value) {
  const auto* quantized = stored.tensor_as_QuantizedTensorValue();
  const auto* tensor = quantized == nullptr ? stored.tensor_as_TensorValue() : quantized->tensor();
  if (tensor == nullptr) return fail(Error::InvalidProgram, "a value of an unknown kind");
  ETX_TRY(read_tensor(*tensor, value));
  const fbs::Quantization found =
      quantized == nullptr ? fbs::Quantization::NONE : quantized->quantization_type();
  if (found != quantization_of(value->type)) {
    return fail(Error::InvalidProgram, "value %u: quantization %d does not fit %s", value->id,
                static_cast<int>(found), name_of(value->type));
  }
  if (is_weight(value->type) && !value->is_constant()) {
    return fail(Error::NotSupported, "value %u: %s that is not constant", value->id,
                name_of(value->type));
  }
  if (value->type == xnn_datatype_qdint8 && (value->is_constant() || value->external != kNone)) {
    return fail(Error::NotSupported, "value %u: qdint8 that is constant or external", value->id);
  }
  if (value->is_constant()) ETX_TRY(bind_constant(blob, context, value));
  if (found == fbs::Quantization::NONE) return Error::Ok;
  return read_quantization(blob, context, *quantized, value);
}

xnn_datatype run_time_type(const fbs::Value& stored) {
  const auto* quantized = stored.tensor_as_QuantizedTensorValue();
  const auto* tensor = quantized == nullptr ? stored.tensor_as_TensorValue() : quantized->tensor();
  return tensor == nullptr ? xnn_datatype_invalid : type_of(tensor->run_time_dtype());
}

}  // namespace etx::xnnpack
