// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_INITIALIZE_H_
#define ETX_XNNPACK_INITIALIZE_H_

#include <xnnpack.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Initializes XNNPACK, and puts this package's functions in the place of some of its own, once a
/// process. Nothing else calls `xnn_initialize`.
enum xnn_status etx_xnnpack_initialize(void);

#ifdef __cplusplus
}
#endif

#endif  // ETX_XNNPACK_INITIALIZE_H_
