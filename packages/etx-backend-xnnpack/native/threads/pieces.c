/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose items are not what a thread should take at a time. pthreadpool hands out each item by
   itself: a factor for each channel, multiplied pixel by pixel, took three times as long with two
   threads as with one. And seven rows of a depthwise convolution are four and three of them. A
   linker puts these functions in the place of pthreadpool's (--wrap): many items are taken in runs,
   and few rows in parts of rows. What is computed is the same. */

#include <pthreadpool.h>
#include <xnnpack/compute.h>

enum { kRuns = 32, kFewRows = 8 }; /* For each thread. */

struct items {
  pthreadpool_task_1d_t task;
  void* context;
};

struct rows {
  const struct dwconv_context* context;
  size_t parts;
};

void __real_pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task,
                                       void* context, size_t range, uint32_t flags);
void __wrap_pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task,
                                       void* context, size_t range, uint32_t flags);
void __real_pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task,
                                       void* context, size_t outer, size_t inner, uint32_t flags);
void __wrap_pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task,
                                       void* context, size_t outer, size_t inner, uint32_t flags);

static void compute_run(struct items* items, size_t start, size_t count) {
  for (size_t i = start; i < start + count; ++i) items->task(items->context, i);
}

void __wrap_pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task,
                                       void* context, size_t range, uint32_t flags) {
  const size_t run = range / (pthreadpool_get_threads_count(pool) * kRuns);
  if (run < 2) {
    __real_pthreadpool_parallelize_1d(pool, task, context, range, flags);
    return;
  }
  struct items items = {task, context};
  pthreadpool_parallelize_1d_tile_1d(pool, (pthreadpool_task_1d_tile_1d_t)compute_run, &items,
                                     range, run, flags);
}

/* Part `index % parts` of a row of outputs. */
static void compute_part(const struct rows* rows, size_t batch, size_t index) {
  const size_t width = rows->context->output_width, part = index % rows->parts;
  const size_t start = part * width / rows->parts, end = (part + 1) * width / rows->parts;
  struct dwconv_context context = *rows->context;
  context.output_width = end - start;
  context.indirect_input = (const void**)((uintptr_t)context.indirect_input +
                                          start * (uintptr_t)context.indirect_input_width_stride);
  context.output =
      (void*)((uintptr_t)context.output + start * (context.output_height_stride / width));
  xnn_compute_dwconv_unipass(&context, batch, index / rows->parts);
}

void __wrap_pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task,
                                       void* context, size_t outer, size_t inner, uint32_t flags) {
  const size_t threads = pthreadpool_get_threads_count(pool), count = outer * inner;
  if (task == (pthreadpool_task_2d_t)xnn_compute_dwconv_unipass && count % threads != 0 &&
      count < threads * kFewRows) {
    const struct dwconv_context* const whole = context;
    struct rows rows = {whole, threads < whole->output_width ? threads : whole->output_width};
    __real_pthreadpool_parallelize_2d(pool, (pthreadpool_task_2d_t)compute_part, &rows, outer,
                                      inner * rows.parts, flags);
    return;
  }
  __real_pthreadpool_parallelize_2d(pool, task, context, outer, inner, flags);
}
