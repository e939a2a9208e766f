// SPDX-License-Identifier: BSD-3-Clause
/// Weights that are packed by blocks are the bytes that XNNPACK makes of them, and no layer is
/// packed by XNNPACK's own function once it is initialized here.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack/config.h>
#include <xnnpack/pack.h>

#include "initialize.h"
#include "packing/goi.h"

enum { kMost = 1 << 16 };
static int8_t weight[kMost];
static int32_t bias[64];
static uint8_t expected[kMost], found[kMost];

static int is_same(size_t columns, size_t depth, size_t nr, size_t kr, int with_bias) {
  const struct xnn_qs8_packing_params params = {(int8_t)(rand() % 256 - 128)};
  const size_t groups = 1 + columns % 2, extra = 4 * nr;
  for (size_t i = 0; i < groups * columns * depth; ++i) weight[i] = (int8_t)(rand() % 256 - 128);
  for (size_t i = 0; i < groups * columns; ++i) bias[i] = rand() - RAND_MAX / 2;
  const int32_t* const added = with_bias ? bias : NULL;
  memset(expected, 0xA5, sizeof(expected));
  memset(found, 0xA5, sizeof(found));
  xnn_pack_qs8_gemm_goi_w(groups, columns, depth, nr, kr, 1, weight, added, NULL, expected, extra,
                          &params);
  etx_xnnpack_pack_goi(groups, columns, depth, nr, kr, 1, weight, added, NULL, found, extra,
                       &params);
  return memcmp(expected, found, sizeof(found)) == 0;
}

static int calls;

static void counted(size_t groups, size_t columns, size_t depth, size_t nr, size_t kr, size_t sr,
                    const int8_t* rows, const int32_t* added, const float* scale, void* packed,
                    size_t extra_bytes, const struct xnn_qs8_packing_params* params) {
  ++calls;
  etx_xnnpack_pack_goi(groups, columns, depth, nr, kr, sr, rows, added, scale, packed, extra_bytes,
                       params);
}

/// Whether a layer is packed by blocks with this configuration, or by what only VNNI has.
static int is_in_place(const struct xnn_gemm_config* config, int is_dynamic) {
  typedef xnn_packw_gemm_goi_ukernel_fn Pack;
  struct xnn_gemm_config* const own = (struct xnn_gemm_config*)(uintptr_t)config;
  if (own == NULL) return 1;
  if (own->pack_gemm_goi != (Pack)etx_xnnpack_pack_goi) {
    return own->pack_gemm_goi != (Pack)xnn_pack_qs8_gemm_goi_w;
  }
  float scales[16];
  for (int i = 0; i < 16; ++i) scales[i] = 1.0f;
  xnn_operator_t layer = NULL;
  calls = 0;
  own->pack_gemm_goi = (Pack)counted;
  const enum xnn_status status =
      is_dynamic
          ? xnn_create_fully_connected_nc_qd8_f32_qc8w(16, 16, 16, 16, scales, weight, NULL, -1.0f,
                                                       1.0f, 0, NULL, NULL, &layer)
          : xnn_create_fully_connected_nc_qs8_qc8w(16, 16, 16, 16, 0, 1.0f, scales, weight, NULL, 0,
                                                   1.0f, -128, 127, 0, NULL, NULL, &layer);
  own->pack_gemm_goi = (Pack)etx_xnnpack_pack_goi;
  xnn_delete_operator(layer);
  return status == xnn_status_success && calls == 1;
}

int main(void) {
  const size_t widths[] = {4, 8, 16}, blocks[] = {4, 8};
  int cases = 0, failures = 0;
  for (size_t columns = 1; columns <= 19; ++columns) {
    for (size_t depth = 4; depth <= 96; depth += 4) {
      for (int i = 0; i < 3 * 2 * 2; ++i, ++cases) {
        failures += !is_same(columns, depth, widths[i % 3], blocks[i / 3 % 2], i / 6);
      }
    }
  }
  if (etx_xnnpack_initialize() != xnn_status_success) return 2;
  cases += 2;
  failures += !is_in_place(xnn_init_qd8_f32_qc8w_gemm_config(), 1);
  failures += !is_in_place(xnn_init_qs8_qc8w_gemm_config(), 0);
  printf("%d cases, %d failures\n", cases, failures);
  return failures != 0;
}
