// SPDX-License-Identifier: BSD-3-Clause
#include "convert.h"

#include <cstring>

namespace etx::portable {

Error convert_to_temp(Context& context, const Tensor& tensor, ScalarType to, const void*& data) {
  const ScalarType from = tensor.scalar_type();
  ETX_CHECK(context, is_castable(from) && is_castable(to), NotSupported,
            "no conversion between the dtypes of these tensors");
  const int64_t size = static_cast<int64_t>(element_size(to));
  const int64_t width = static_cast<int64_t>(tensor.element_size());
  char* temp = context.allocate_temp_array<char>(static_cast<size_t>(tensor.numel() * size));
  ETX_CHECK(context, temp != nullptr, MemoryAllocationFailed,
            "no temporary memory to convert a tensor to out's dtype");
  const char* src = static_cast<const char*>(tensor.const_data_ptr());
  context.parallel_for(0, tensor.numel(), 16384, [&](int64_t begin, int64_t end) {
    cast(src + begin * width, from, 1, temp + begin * size, to, end - begin);
  });
  data = temp;
  return Error::Ok;
}

Error scalar_bytes(Context& context, const Scalar& value, ScalarType to, void* element) {
  ScalarType part = to;
  if (to == ScalarType::ComplexHalf) part = ScalarType::Half;
  if (to == ScalarType::ComplexFloat) part = ScalarType::Float;
  if (to == ScalarType::ComplexDouble) part = ScalarType::Double;
  ETX_CHECK(context, is_castable(part), NotSupported, "no conversion of value to out's dtype");
  const Element real = cast(value, part);
  std::memset(element, 0, element_size(to));
  std::memcpy(element, real.bytes, element_size(part));
  return Error::Ok;
}

}  // namespace etx::portable
