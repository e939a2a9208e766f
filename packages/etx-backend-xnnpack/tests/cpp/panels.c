/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights that the cache of a core does not hold are read in panels, each for all rows; others as
   XNNPACK says. In the place of a kernel a function writes down what it is asked for. */
#include <stdio.h>
#include <string.h>

#include <cpuinfo.h>
#include <pthreadpool.h>
#include <xnnpack/compute.h>

#include "threads/pool.h"

enum { kRows = 23, kTileRows = 7, kTiles = 4, kAtOnce = 16, kColumns = 4096 };

static size_t cache;
static size_t num_calls, num_columns, largest;
static int is_in_order;
static const char* last;

static void record(size_t rows, size_t columns, size_t depth, const void* a, size_t a_stride,
                   const void* weights, void* c, size_t cm_stride, size_t cn_stride,
                   const void* params) {
  (void)rows, (void)a, (void)a_stride, (void)c, (void)cm_stride, (void)cn_stride, (void)params;
  ++num_calls;
  num_columns += columns;
  if (columns * depth > largest) largest = columns * depth;
  if ((const char*)weights < last) is_in_order = 0;
  last = weights;
}

/* Rows x kColumns with `size` bytes of weights. */
static void run(pthreadpool_t pool, size_t rows, size_t size) {
  static char weights[1]; /* never read */
  struct gemm_context context;
  memset(&context, 0, sizeof(context));
  context.w_stride = context.k_scaled = size / kColumns;
  context.packed_w = weights;
  context.cn_stride = kAtOnce * sizeof(float);
  context.log2_csize = 2;
  context.ukernel.function[0] = (xnn_gemm_ukernel_fn)record;
  num_calls = num_columns = largest = 0;
  is_in_order = 1;
  last = weights;
  pthreadpool_parallelize_2d_tile_2d(pool, (pthreadpool_task_2d_tile_2d_t)xnn_compute_gemm,
                                     &context, rows, kColumns, kTileRows, kColumns, 0);
}

static int is_whole(size_t tiles) { return num_calls == tiles && num_columns == tiles * kColumns; }

int main(void) {
  if (!cpuinfo_initialize() || cpuinfo_get_l2_cache(0) == NULL) {
    printf("no size of a cache is known\n");
    return 0;
  }
  cache = cpuinfo_get_l2_cache(0)->size;
  pthreadpool_t with = etx_xnnpack_pool_create(1, true);
  pthreadpool_t without = etx_xnnpack_pool_create(1, false);
  int failures = 0;
  run(with, kRows, 4 * cache);
  failures += !(num_calls >= 8 * kTiles && num_columns == (size_t)kTiles * kColumns);
  failures += !(is_in_order && largest <= cache / 2);
  run(with, kRows, cache);
  failures += !is_whole(kTiles);
  run(with, kTileRows, 4 * cache);
  failures += !is_whole(1);
  run(without, kRows, 4 * cache);
  failures += !is_whole(kTiles);
  run(NULL, kRows, 4 * cache);
  failures += !is_whole(kTiles);
  etx_xnnpack_pool_destroy(with);
  etx_xnnpack_pool_destroy(without);
  printf("a cache of %zu bytes, %d failures\n", cache, failures);
  return failures == 0 ? 0 : 1;
}
