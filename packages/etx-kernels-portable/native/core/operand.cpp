// SPDX-License-Identifier: BSD-3-Clause
#include "core/operand.h"

#include "core/cast.h"
#include "core/convert.h"
#include "core/scratch.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

constexpr const char* kNoMemory = "not enough temporary memory for the result";

/// True when the elements lie in this dim order; null: row-major.
bool lies_in(const Tensor& tensor, const uint8_t* dim_order) {
  if (!kDimOrdersBuilt) return true;
  ssize_t stride = 1;
  for (ssize_t i = tensor.dim(); i-- > 0;) {
    const ssize_t d = dim_order == nullptr ? i : dim_order[i];
    if (tensor.size(d) <= 1) continue;
    if (tensor.stride(d) != stride) return false;
    stride *= tensor.size(d);
  }
  return true;
}

}  // namespace

Error read_operand(Context& context, const Tensor& tensor, ScalarType as, const void*& data) {
  data = tensor.const_data_ptr();
  if (tensor.scalar_type() != as) {
    ETX_TRY(convert_to_temp(context, tensor, as, data));
  }
  if (!kDimOrdersBuilt || tensor.is_contiguous() || tensor.numel() == 0) return Error::Ok;
  const int64_t bytes = tensor.numel() * static_cast<int64_t>(element_size(as));
  ETX_ASSIGN(char* const memory,
             scratch<char>(context, bytes, "not enough temporary memory to reorder an operand"));
  const void* const elements = data;
  data = memory;
  return pack_elements(context, tensor, element_size(as), elements, memory);
}

Error ResultOperand::prepare(Context& context, const Tensor& out, ScalarType as,
                             const uint8_t* dim_order) {
  as_ = as;
  dim_order_ = dim_order;
  data_ = out.mutable_data_ptr();
  if (out.scalar_type() == as && lies_in(out, dim_order)) return Error::Ok;
  const int64_t bytes = out.numel() * static_cast<int64_t>(element_size(as));
  ETX_ASSIGN(data_, scratch<char>(context, bytes, kNoMemory));
  return Error::Ok;
}

Error ResultOperand::finish(Context& context, const Tensor& out) const {
  if (data_ == out.mutable_data_ptr() || out.numel() == 0) return Error::Ok;
  const ScalarType type = out.scalar_type();
  const bool in_place = lies_in(out, dim_order_);
  void* elements = data_;
  if (type != as_) {
    elements = out.mutable_data_ptr();
    if (!in_place) {
      ETX_ASSIGN(elements, scratch<char>(context, static_cast<int64_t>(out.nbytes()), kNoMemory));
    }
    cast(data_, as_, 1, elements, type, out.numel());
  }
  return in_place ? Error::Ok : unpack_elements(context, out, elements, dim_order_);
}

}  // namespace etx::portable
