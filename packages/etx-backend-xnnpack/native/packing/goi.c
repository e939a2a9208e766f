// SPDX-License-Identifier: BSD-3-Clause
/// XNNPACK 2024-11 packs int8 weights of most processors byte by byte. Of weights that fill blocks
/// of the depth, which are nearly all, the same bytes are made here by moves of whole blocks.

#include "packing/goi.h"

#include <string.h>
#include <xnnpack/config.h>
#include <xnnpack/pack.h>

static int32_t sum_of(const int8_t* x, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

/// `columns` rows of the weight, `depth` bytes each, by turns of a block; the blocks of columns
/// that are none stay as they are.
static void interleave(const int8_t* rows, size_t columns, size_t depth, size_t nr, size_t kr,
                       int8_t* to) {
  for (size_t k = 0; k < depth; k += kr, to += nr * kr) {
    const int8_t* from = rows + k;
    if (kr == 8) {
      for (size_t n = 0; n < columns; ++n, from += depth) memcpy(to + n * 8, from, 8);
    } else {
      for (size_t n = 0; n < columns; ++n, from += depth) memcpy(to + n * 4, from, 4);
    }
  }
}

void etx_xnnpack_pack_goi(size_t groups, size_t columns, size_t depth, size_t nr, size_t kr,
                          size_t sr, const int8_t* weight, const int32_t* bias, const float* scale,
                          void* packed, size_t extra_bytes,
                          const struct xnn_qs8_packing_params* params) {
  if (sr != 1 || (kr != 4 && kr != 8) || depth % kr != 0) {
    xnn_pack_qs8_gemm_goi_w(groups, columns, depth, nr, kr, sr, weight, bias, scale, packed,
                            extra_bytes, params);
    return;
  }
  int8_t* to = packed;
  for (size_t g = 0; g < groups; ++g) {
    for (size_t first = 0; first < columns; first += nr) {
      const size_t some = columns - first < nr ? columns - first : nr;
      const int8_t* const rows = weight + (g * columns + first) * depth;
      for (size_t n = 0; n < some; ++n) {
        // Modulo 2^32, as XNNPACK's kernels add.
        const uint32_t own = bias == NULL ? 0 : (uint32_t)bias[g * columns + first + n];
        const uint32_t less =
            (uint32_t)sum_of(rows + n * depth, depth) * (uint32_t)params->input_zero_point;
        const uint32_t start = own - less;
        memcpy(to + n * sizeof(start), &start, sizeof(start));
      }
      to += nr * sizeof(int32_t);
      interleave(rows, some, depth, nr, kr, to);
      to += nr * depth + extra_bytes;
    }
  }
}

static void replace(const struct xnn_gemm_config* config) {
  struct xnn_gemm_config* const own = (struct xnn_gemm_config*)(uintptr_t)config;
  if (own == NULL || own->pack_gemm_goi != (xnn_packw_gemm_goi_ukernel_fn)xnn_pack_qs8_gemm_goi_w) {
    return;
  }
  own->pack_gemm_goi = (xnn_packw_gemm_goi_ukernel_fn)etx_xnnpack_pack_goi;
  // What is asked first, and would call XNNPACK's function itself.
  own->pack_weights_and_biases = NULL;
  own->packed_stride_weights_and_biases = NULL;
}

void etx_xnnpack_pack_by_blocks(void) {
  replace(xnn_init_qd8_f32_qc8w_gemm_config());
  replace(xnn_init_qd8_f16_qc8w_gemm_config());
  replace(xnn_init_qs8_qc8w_gemm_config());
}
