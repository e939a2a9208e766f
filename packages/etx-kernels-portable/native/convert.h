// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONVERT_H_
#define ETX_PORTABLE_CONVERT_H_

#include <cstdint>

#include <etx/kernel.h>

namespace etx::portable {

/// Dtypes that `convert` and `scalar_bytes` know: all real ones but float8 and packed ones.
constexpr bool is_convertible(ScalarType type) {
  return is_floating(type) || is_integral(type, true);
}

/// Converts `count` consecutive elements between two convertible dtypes. Numbers that an integer
/// dtype cannot hold wrap; NaN and infinities become its truncated smallest int64.
void convert(void* dst, ScalarType to, const void* src, ScalarType from, int64_t count);

/// Converts all elements of `tensor` into temporary memory of the same layout; sets `data`.
/// Errors: NotSupported for dtypes that are not convertible, MemoryAllocationFailed.
Error convert_to_temp(Context& context, const Tensor& tensor, ScalarType to, const void*& data);

/// Writes `value` as one element of dtype `to`. Errors: NotSupported for others than convertible
/// and complex dtypes.
Error scalar_bytes(Context& context, const Scalar& value, ScalarType to, void* element);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONVERT_H_
