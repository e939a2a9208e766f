// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_SPECIAL_H_
#define ETX_XNNPACK_SPECIAL_H_

/// Lets XNNPACK, which must be initialized, compute roots, their reciprocals, logarithms and
/// sigmoids of float32 that are those of all numbers.
void etx_xnnpack_use_special(void);

#endif  // ETX_XNNPACK_SPECIAL_H_
