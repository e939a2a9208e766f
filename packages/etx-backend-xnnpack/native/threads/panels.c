/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights larger than the cache of a core. XNNPACK takes a few rows of the argument at a time and
   reads all weights for each of them. A linker puts this function in the place of pthreadpool's
   (--wrap): where it is a product of matrices whose weights that cache does not hold, they are
   taken in panels that it does hold, each of them for all rows. The same sums come in the same
   order: which tile is computed when is all that changes. */

#include <cpuinfo.h>
#include <pthreadpool.h>
#include <xnnpack/compute.h>

#include "pool.h"

struct product {
  pthreadpool_task_2d_tile_2d_t task;
  void* context;
};

static void compute_tile(struct product* product, size_t column, size_t row, size_t columns,
                         size_t rows) {
  product->task(product->context, row, column, rows, columns);
}

static size_t size_of_cache(void) {
  const struct cpuinfo_cache* cache = cpuinfo_initialize() ? cpuinfo_get_l2_cache(0) : NULL;
  return cache == NULL ? 0 : cache->size;
}

/* The columns of a panel: half of the cache, the other half is for the rows. `stride`: bytes of the
   weights of a column. `at_once`: columns of a kernel's call. */
static size_t panel_of(size_t columns, size_t stride, size_t at_once) {
  const size_t cache = size_of_cache();
  if (cache == 0 || at_once == 0 || columns * stride <= cache) return columns;
  const size_t blocks = cache / 2 / (stride * at_once);
  return (blocks == 0 ? 1 : blocks) * at_once;
}

/* The columns of a panel of a task, all of them where it is to be left as it is. */
static size_t find_panel(pthreadpool_task_2d_tile_2d_t task, const void* context, size_t columns) {
  if (task == (pthreadpool_task_2d_tile_2d_t)xnn_compute_gemm ||
      task == (pthreadpool_task_2d_tile_2d_t)xnn_compute_dqgemm) {
    const struct gemm_context* gemm = context;
    return panel_of(columns, gemm->w_stride, gemm->cn_stride >> gemm->log2_csize);
  }
  if (task == (pthreadpool_task_2d_tile_2d_t)xnn_compute_igemm ||
      task == (pthreadpool_task_2d_tile_2d_t)xnn_compute_dqigemm) {
    const struct igemm_context* igemm = context;
    return panel_of(columns, igemm->w_stride, igemm->cn_stride >> igemm->log2_csize);
  }
  return columns;
}

void __real_pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_2d_tile_2d_t task, void* context,
                                               size_t rows, size_t columns, size_t tile_rows,
                                               size_t tile_columns, uint32_t flags);
void __wrap_pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_2d_tile_2d_t task, void* context,
                                               size_t rows, size_t columns, size_t tile_rows,
                                               size_t tile_columns, uint32_t flags);

void __wrap_pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_2d_tile_2d_t task, void* context,
                                               size_t rows, size_t columns, size_t tile_rows,
                                               size_t tile_columns, uint32_t flags) {
  if (rows > tile_rows && etx_xnnpack_pool_has_panels(pool)) {
    const size_t panel = find_panel(task, context, columns);
    if (panel < columns) {
      struct product product = {task, context};
      __real_pthreadpool_parallelize_2d_tile_2d(
          pool, (pthreadpool_task_2d_tile_2d_t)compute_tile, &product, columns, rows,
          panel < tile_columns ? panel : tile_columns, tile_rows, flags);
      return;
    }
  }
  __real_pthreadpool_parallelize_2d_tile_2d(pool, task, context, rows, columns, tile_rows,
                                            tile_columns, flags);
}
