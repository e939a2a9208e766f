// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_OPERAND_H_
#define ETX_PORTABLE_OPERAND_H_

#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"

namespace etx::portable {

/// An input of an elementwise operator and the dtype in which its loop reads it.
struct Operand {
  Operand(const Tensor& tensor, ScalarType seen_as) : Operand(tensor, seen_as, seen_as) {}
  /// The elements are converted to dtype `first` before they are seen in `seen_as`.
  Operand(const Tensor& tensor, ScalarType first, ScalarType seen_as)
      : impl(tensor.impl()),
        data(tensor.const_data_ptr()),
        dtype(tensor.scalar_type()),
        through(first == tensor.scalar_type() ? seen_as : first),
        as(seen_as) {}
  /// One element of dtype `seen_as`, repeated.
  Operand(const Element& element, ScalarType seen_as)
      : data(element.bytes), dtype(seen_as), through(seen_as), as(seen_as) {}

  bool needs_conversion() const { return dtype != as || through != as; }

  etx_tensor* impl = nullptr;  ///< Null: `data` is one element.
  const void* data;
  ScalarType dtype;
  ScalarType through;
  ScalarType as;
};

/// Kernels of this family are written for row-major tensors of the types that `wide` names.
/// Operands of other dtypes or dim orders are converted on the way in and out.
using Computed = DtypeList<DtypeTag<ScalarType::Float, float>, DtypeTag<ScalarType::Double, double>,
                           DtypeTag<ScalarType::Long, int64_t>>;
using ComputedFloating = Join<Float32, Float64>;

/// Sets `data` to the elements of `tensor` in row-major order as dtype `as`: its own memory where
/// they lie so already, else temporary memory.
/// Errors: NotSupported for dtypes that cannot be converted, MemoryAllocationFailed.
Error read_operand(Context& context, const Tensor& tensor, ScalarType as, const void*& data);

template <typename T>
Error read_operand(Context& context, const Tensor& tensor, ScalarType as, const T*& data) {
  const void* untyped = nullptr;
  const Error error = read_operand(context, tensor, as, untyped);
  data = static_cast<const T*>(untyped);
  return error;
}

/// The same for an optional operand; `data` is null when there is none.
template <typename T>
Error read_operand(Context& context, const std::optional<Tensor>& tensor, ScalarType as,
                   const T*& data) {
  data = nullptr;
  return tensor.has_value() ? read_operand(context, *tensor, as, data) : Error::Ok;
}

/// Where a kernel writes its result as dtype `as`, in row-major or another dim order; `finish`
/// brings it to the tensor when that has another layout or dtype.
class ResultOperand {
 public:
  /// `out` must have its final size; `dim_order`, of its rank, must outlive the operand.
  Error prepare(Context& context, const Tensor& out, ScalarType as,
                const uint8_t* dim_order = nullptr);
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  Error finish(Context& context, const Tensor& out) const;

 private:
  void* data_ = nullptr;
  ScalarType as_ = ScalarType::Float;
  const uint8_t* dim_order_ = nullptr;  ///< Null: row-major.
};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_OPERAND_H_
