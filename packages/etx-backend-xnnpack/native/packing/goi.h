// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_GOI_H_
#define ETX_XNNPACK_GOI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xnn_qs8_packing_params;

/// What `xnn_pack_qs8_gemm_goi_w` does: writes for each `nr` rows of a weight (groups, columns,
/// depth) their sums' beginnings, their blocks of `kr` of the depth in turns, and `extra_bytes`.
void etx_xnnpack_pack_goi(size_t groups, size_t columns, size_t depth, size_t nr, size_t kr,
                          size_t sr, const int8_t* weight, const int32_t* bias, const float* scale,
                          void* packed, size_t extra_bytes,
                          const struct xnn_qs8_packing_params* params);

/// Lets XNNPACK, which must be initialized, pack int8 weights a block at a time.
void etx_xnnpack_pack_by_blocks(void);

#ifdef __cplusplus
}
#endif

#endif  // ETX_XNNPACK_GOI_H_
