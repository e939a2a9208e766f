// SPDX-License-Identifier: BSD-3-Clause
#include "core/convert.h"

#include <cstring>

#include "core/complex.h"
#include "core/scratch.h"

namespace etx::portable {
namespace {

/// `n` elements of a complex dtype from others; real numbers have no imaginary part.
void cast_to_complex(const char* src, ScalarType from, char* dst, ScalarType to, int64_t n) {
  const size_t width = element_size(from);
  const size_t half = element_size(part_of(to));
  for (int64_t i = 0; i < n; ++i, src += width, dst += 2 * half) {
    cast(src, part_of(from), 1, dst, part_of(to), 1);
    if (is_complex(from)) {
      cast(src + width / 2, part_of(from), 1, dst + half, part_of(to), 1);
    } else {
      std::memset(dst + half, 0, half);
    }
  }
}

}  // namespace

Error convert_to_temp(Context& context, const Tensor& tensor, ScalarType to, const void*& data) {
  const ScalarType from = tensor.scalar_type();
  const bool to_complex = is_complex(to) && is_castable(part_of(from));
  ETX_CHECK(context, to_complex || (is_castable(from) && is_castable(to)), NotSupported,
            "no conversion between the dtypes of these tensors");
  const int64_t size = static_cast<int64_t>(element_size(to));
  const int64_t width = static_cast<int64_t>(tensor.element_size());
  ETX_ASSIGN(char* temp, scratch<char>(context, tensor.numel() * size,
                                       "no temporary memory to convert a tensor to out's dtype"));
  const char* src = static_cast<const char*>(tensor.const_data_ptr());
  context.parallel_for(0, tensor.numel(), 16384, [&](int64_t begin, int64_t end) {
    if (to_complex) {
      cast_to_complex(src + begin * width, from, temp + begin * size, to, end - begin);
    } else {
      cast(src + begin * width, from, 1, temp + begin * size, to, end - begin);
    }
  });
  data = temp;
  return Error::Ok;
}

Error scalar_bytes(Context& context, const Scalar& value, ScalarType to, void* element) {
  const ScalarType part = part_of(to);
  ETX_CHECK(context, is_castable(part), NotSupported, "no conversion of value to out's dtype");
  const Element real = cast(value, part);
  std::memset(element, 0, element_size(to));
  std::memcpy(element, real.bytes, element_size(part));
  return Error::Ok;
}

}  // namespace etx::portable
