// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

/// Of numbers whose sign is the highest bit of a `T`.
template <typename T>
void negate_imaginary(Context& context, const Tensor& out) {
  T* const data = static_cast<T*>(out.mutable_data_ptr());
  constexpr T kSign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  context.parallel_for(0, out.numel(), 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[2 * i + 1] ^= kSign;
  });
}

Error conj_physical_out(Context& context, const Tensor& self, Tensor& out) {
  ETX_TRY(resize_out(context, out, Shape(self)));
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(copy_elements(context, out, self));
  switch (out.scalar_type()) {
    case ScalarType::ComplexHalf: negate_imaginary<uint16_t>(context, out); break;
    case ScalarType::ComplexFloat: negate_imaginary<uint32_t>(context, out); break;
    case ScalarType::ComplexDouble: negate_imaginary<uint64_t>(context, out); break;
    default: break;
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::_conj_physical.out", conj_physical_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(conj_kernels, kRows);

}  // namespace etx::portable
