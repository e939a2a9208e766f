// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_HOSTED_STRIDED_COPY_H_
#define ETX_NATIVE_HOSTED_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>

namespace etx {

/// Copies elements of `element` bytes from one layout to another, which may overlap; strides in
/// elements.
void copy_strided(void* to, const int32_t* to_strides, const void* from,
                  const int64_t* from_strides, const int32_t* sizes, size_t rank, size_t element);

}  // namespace etx

#endif  // ETX_NATIVE_HOSTED_STRIDED_COPY_H_
