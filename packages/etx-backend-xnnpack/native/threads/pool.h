/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETX_XNNPACK_THREADS_POOL_H_
#define ETX_XNNPACK_THREADS_POOL_H_

#include <stdbool.h>
#include <stddef.h>

#include <etx/abi.h>
#include <pthreadpool.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A pool without threads of its own: loops run on those of the runtime that executes. One delegate
/// has one, and uses it from one thread at a time. Null when there is no memory.
pthreadpool_t etx_xnnpack_pool_create(size_t most_threads, bool has_panels);
void etx_xnnpack_pool_destroy(pthreadpool_t pool);

/// True where weights larger than the cache of a core are read in panels: see panels.c.
bool etx_xnnpack_pool_has_panels(pthreadpool_t pool);

/// Lets the next loops run on the threads of `context`, or on this one where it is null. Returns
/// how many there are: at most `most_threads`.
size_t etx_xnnpack_pool_use(pthreadpool_t pool, etx_context* context);

#ifdef __cplusplus
}
#endif

#endif  // ETX_XNNPACK_THREADS_POOL_H_
