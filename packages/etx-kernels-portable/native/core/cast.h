// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CAST_H_
#define ETX_PORTABLE_CAST_H_

#include <cstdint>

#include <etx/dtype.h>
#include <etx/value.h>

namespace etx::portable {

/// Dtypes that `cast` knows: bool, integers of every width, float16, bfloat16, float32, float64.
constexpr bool is_castable(ScalarType type) { return is_floating(type) || is_integral(type, true); }
constexpr uint64_t castable_bits() {
  uint64_t bits = 0;
  for (int i = 0; i < kNumScalarTypes; ++i) {
    if (is_castable(static_cast<ScalarType>(i))) bits |= uint64_t{1} << i;
  }
  return bits;
}
constexpr uint64_t kCastable = castable_bits();

/// The type in which values of `type` are computed: Long, Float or Double.
constexpr ScalarType wide(ScalarType type) {
  if (type == ScalarType::Double) return ScalarType::Double;
  return is_floating(type) ? ScalarType::Float : ScalarType::Long;
}

/// Converts `n` elements; those of `src` lie `stride` elements apart. To bool: not equal to zero.
/// Between integers: modulo 2^bits. A number beyond an integer dtype's range gives any value.
void cast(const void* src, ScalarType from, int64_t stride, void* dst, ScalarType to, int64_t n);

/// The same, by way of a third dtype, to which the elements are rounded or cut.
void cast_through(const void* src, ScalarType from, int64_t stride, ScalarType through, void* dst,
                  ScalarType to, int64_t n);

/// One element of any castable dtype.
struct Element {
  alignas(8) unsigned char bytes[8] = {};
};
Element cast(Scalar value, ScalarType to);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CAST_H_
