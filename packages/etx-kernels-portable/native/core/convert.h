// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONVERT_H_
#define ETX_PORTABLE_CONVERT_H_

#include <etx/kernel.h>

#include "core/cast.h"

namespace etx::portable {

/// Converts all elements of `tensor` into temporary memory of the same layout; sets `data`.
/// Errors: NotSupported but from castable dtypes to these, and from them and complex ones to
/// complex ones; MemoryAllocationFailed.
Error convert_to_temp(Context& context, const Tensor& tensor, ScalarType to, const void*& data);

/// Writes `value` as one element of dtype `to` into up to 16 bytes.
/// Errors: NotSupported for others than castable and complex dtypes.
Error scalar_bytes(Context& context, const Scalar& value, ScalarType to, void* element);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONVERT_H_
