// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_COMPLEX_H_
#define ETX_PORTABLE_COMPLEX_H_

#include <etx/kernel.h>

#include "selection.h"

namespace etx::portable {

/// The dtype of a complex dtype's parts; of others the dtype itself.
ScalarType part_of(ScalarType type);

/// True for complex32, complex64 and complex128.
inline bool is_complex(ScalarType type) { return kComplexBuilt && part_of(type) != type; }

/// out = |self|, of the dtype of self's parts.
/// Errors: InvalidArgument for another dtype or shape of out.
Error complex_abs(Context& context, const Tensor& self, Tensor& out);

/// out = (self == other) == equal, where both are of one complex dtype.
/// Errors: NotSupported for two dtypes, InvalidArgument for shapes that do not broadcast.
Error complex_equal(Context& context, const Tensor& self, const Tensor& other, bool equal,
                    Tensor& out);
Error complex_equal(Context& context, const Tensor& self, const Scalar& other, bool equal,
                    Tensor& out);

/// out[...] = src[...], one of them complex; src broadcasts to out, which has its final size.
/// Errors: NotSupported for dtypes without conversion.
Error convert_complex(Context& context, const Tensor& src, const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_COMPLEX_H_
