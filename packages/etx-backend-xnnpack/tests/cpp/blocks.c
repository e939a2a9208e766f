// SPDX-License-Identifier: BSD-3-Clause
/// Weights that are packed by blocks are the bytes that XNNPACK makes of them.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack/pack.h>

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
  printf("%d cases, %d failures\n", cases, failures);
  return failures != 0;
}
