/* SPDX-License-Identifier: BSD-3-Clause */
/* What pthreadpool's loops need of a platform: to run a function once for each of its threads. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "threadpool-common.h"
#include "threadpool-object.h"
#include "threadpool-utils.h"

/* Lies in front of the pool. */
struct owner {
  etx_context* context;
  size_t most_threads;
  bool has_panels;
};
#define OWNER_SIZE PTHREADPOOL_CACHELINE_SIZE
_Static_assert(sizeof(struct owner) <= OWNER_SIZE, "the pool stays aligned");

static struct owner* owner_of(struct pthreadpool* pool) {
  return (struct owner*)(void*)((char*)pool - OWNER_SIZE);
}

struct pthreadpool* etx_xnnpack_pool_create(size_t most_threads, bool has_panels) {
  const size_t size =
      OWNER_SIZE + sizeof(struct pthreadpool) + most_threads * sizeof(struct thread_info);
  char* memory = aligned_alloc(PTHREADPOOL_CACHELINE_SIZE, size);
  if (memory == NULL) return NULL;
  memset(memory, 0, size);
  struct pthreadpool* pool = (struct pthreadpool*)(void*)(memory + OWNER_SIZE);
  owner_of(pool)->most_threads = most_threads;
  owner_of(pool)->has_panels = has_panels;
  for (size_t i = 0; i < most_threads; ++i) {
    pool->threads[i].thread_number = i;
    pool->threads[i].threadpool = pool;
  }
  pool->threads_count = fxdiv_init_size_t(1);
  return pool;
}

void etx_xnnpack_pool_destroy(struct pthreadpool* pool) {
  if (pool != NULL) free(owner_of(pool));
}

bool etx_xnnpack_pool_has_panels(struct pthreadpool* pool) {
  return pool != NULL && owner_of(pool)->has_panels;
}

size_t etx_xnnpack_pool_use(struct pthreadpool* pool, etx_context* context) {
  struct owner* owner = owner_of(pool);
  size_t count = 1;
  if (context != NULL && context->parallel_for != NULL) count = context->num_threads;
  if (count > owner->most_threads) count = owner->most_threads;
  if (count == 0) count = 1;
  owner->context = context;
  if (pool->threads_count.value != count) pool->threads_count = fxdiv_init_size_t(count);
  return count;
}

static void run_threads(void* user, int64_t begin, int64_t end) {
  struct pthreadpool* pool = user;
  const thread_function_t function =
      (thread_function_t)pthreadpool_load_relaxed_void_p(&pool->thread_function);
  const uint32_t flags = pthreadpool_load_relaxed_uint32_t(&pool->flags);
  const struct fpu_state saved = get_fpu_state();
  if ((flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0) disable_fpu_denormals();
  for (int64_t i = begin; i < end; ++i) function(pool, &pool->threads[i]);
  set_fpu_state(saved);
}

/* Each thread has a part of the range, and takes of the parts of others when its own is done: it
   does not matter when a thread comes, or whether one runs several. */
PTHREADPOOL_INTERNAL void pthreadpool_parallelize(struct pthreadpool* pool,
                                                  thread_function_t function, const void* params,
                                                  size_t params_size, void* task, void* argument,
                                                  size_t range, uint32_t flags) {
  pthreadpool_store_relaxed_void_p(&pool->thread_function, (void*)function);
  pthreadpool_store_relaxed_void_p(&pool->task, task);
  pthreadpool_store_relaxed_void_p(&pool->argument, argument);
  pthreadpool_store_relaxed_uint32_t(&pool->flags, flags);
  if (params_size != 0) memcpy(&pool->params, params, params_size);
  const struct fxdiv_result_size_t share = fxdiv_divide_size_t(range, pool->threads_count);
  const size_t count = pool->threads_count.value;
  size_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    struct thread_info* thread = &pool->threads[i];
    const size_t length = share.quotient + (i < share.remainder ? 1 : 0);
    pthreadpool_store_relaxed_size_t(&thread->range_start, start);
    pthreadpool_store_relaxed_size_t(&thread->range_end, start + length);
    pthreadpool_store_relaxed_size_t(&thread->range_length, length);
    start += length;
  }
  etx_context* context = owner_of(pool)->context;
  context->parallel_for(context, 0, (int64_t)count, 1, run_threads, pool);
}
