// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_NARROW_H_
#define ETX_XNNPACK_NARROW_H_

/// Lets XNNPACK, which must be initialized, multiply float32 by 16 columns at once in layers of few
/// or odd columns, where it takes 32.
void etx_xnnpack_use_narrow(void);

#endif  // ETX_XNNPACK_NARROW_H_
