// SPDX-License-Identifier: BSD-3-Clause
#include "core/operand.h"

#include "core/cast.h"
#include "core/convert.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// A row-major tensor with the sizes of another.
class RowMajor {
 public:
  RowMajor(const Tensor& like, ScalarType type, void* data) : impl_(*like.impl()) {
    for (uint8_t i = 0; i < impl_.rank; ++i) order_[i] = i;
    impl_.data = data;
    impl_.dtype = static_cast<int8_t>(type);
    impl_.strides = strides_;
    impl_.dim_order = order_;
    Tensor::set_strides(impl_);
  }
  Tensor tensor() { return Tensor(&impl_); }

 private:
  TensorImpl impl_;
  int32_t strides_[kMaxRank] = {};
  uint8_t order_[kMaxRank] = {};
};

}  // namespace

Error read_operand(Context& context, const Tensor& tensor, ScalarType as, const void*& data) {
  data = tensor.const_data_ptr();
  if (tensor.scalar_type() != as) {
    ETX_TRY(convert_to_temp(context, tensor, as, data));
  }
  if (tensor.is_contiguous() || tensor.numel() == 0) return Error::Ok;
  void* const memory =
      context.allocate_temp(static_cast<size_t>(tensor.numel()) * element_size(as));
  ETX_CHECK(context, memory != nullptr, MemoryAllocationFailed,
            "not enough temporary memory to reorder an operand");
  TensorImpl source = *tensor.impl();
  source.data = const_cast<void*>(data);
  source.dtype = static_cast<int8_t>(as);
  RowMajor target(tensor, as, memory);
  data = memory;
  return copy_elements(context, target.tensor(), Tensor(&source));
}

Error ResultOperand::prepare(Context& context, const Tensor& out, ScalarType as) {
  as_ = as;
  data_ = out.mutable_data_ptr();
  if (out.scalar_type() == as && out.is_contiguous()) return Error::Ok;
  data_ = context.allocate_temp(static_cast<size_t>(out.numel()) * element_size(as) + 1);
  ETX_CHECK(context, data_ != nullptr, MemoryAllocationFailed,
            "not enough temporary memory for the result");
  return Error::Ok;
}

Error ResultOperand::finish(Context& context, const Tensor& out) const {
  if (data_ == out.mutable_data_ptr() || out.numel() == 0) return Error::Ok;
  const ScalarType type = out.scalar_type();
  if (out.is_contiguous()) {
    cast(data_, as_, 1, out.mutable_data_ptr(), type, out.numel());
    return Error::Ok;
  }
  void* converted = data_;
  if (type != as_) {
    converted = context.allocate_temp(out.nbytes());
    ETX_CHECK(context, converted != nullptr, MemoryAllocationFailed,
              "not enough temporary memory for the result");
    cast(data_, as_, 1, converted, type, out.numel());
  }
  RowMajor source(out, type, converted);
  return copy_elements(context, out, source.tensor());
}

}  // namespace etx::portable
