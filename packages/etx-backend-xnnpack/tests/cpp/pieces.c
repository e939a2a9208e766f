/* SPDX-License-Identifier: BSD-3-Clause */
/* Each item of a loop, and each point of a depthwise convolution's rows, is computed once, from its
   own inputs, however many threads there are; rows that threads do not share evenly are divided. */
#include <stdio.h>
#include <string.h>

#include <pthreadpool.h>
#include <xnnpack/compute.h>

#include "threads/pool.h"

enum { kMostThreads = 4, kMostItems = 2000, kMostRows = 40, kMostWidth = 12, kBatch = 2 };
enum { kTaps = 3, kChannels = 5, kStride = 8 }; /* floats of a point of the output */

static int counts[kMostItems], num_calls, num_turns, failures;
static size_t last;
static const void* taps[kMostRows * kMostWidth * kTaps];
static float output[kBatch * kMostRows * kMostWidth * kStride];
static size_t height, width;

static void parallel_for(struct etx_context* self, int64_t begin, int64_t end, int64_t grain,
                         void (*body)(void* user, int64_t begin, int64_t end), void* user) {
  (void)self, (void)grain;
  body(user, begin, end);
}

/* One thread takes of its own items from the front, of the others' from behind. */
static void count_item(int* items, size_t i) {
  ++items[i];
  num_turns += i < last;
  last = i;
}

static void count_points(size_t channels, size_t points, const void** input, const void* weights,
                         void* result, intptr_t input_stride, size_t increment, size_t offset,
                         const void* zero, const void* params) {
  (void)weights, (void)zero, (void)params;
  ++num_calls;
  const size_t first = (size_t)((float*)result - output) / kStride;
  const size_t batch = first / (height * width), at = first % (height * width);
  if (channels != kChannels || input_stride != kTaps * (intptr_t)sizeof(void*) ||
      increment != (kStride - kChannels) * sizeof(float) || offset != 100 + 1000 * batch ||
      input != taps + at * kTaps || at % width + points > width) {
    ++failures;
  }
  for (size_t i = 0; i < points; ++i) ++counts[first + i];
}

static void check(size_t count) {
  for (size_t i = 0; i < kMostItems; ++i) failures += counts[i] != (i < count);
  memset(counts, 0, sizeof(counts));
}

static void run_rows(pthreadpool_t pool, size_t threads) {
  struct dwconv_context context = {
      .indirect_input = taps,
      .indirect_input_width_stride = kTaps * sizeof(void*),
      .indirect_input_height_stride = kTaps * width * sizeof(void*),
      .input_offset = 100,
      .input_batch_stride = 1000,
      .output = output,
      .output_batch_stride = height * width * kStride * sizeof(float),
      .output_height_stride = width * kStride * sizeof(float),
      .output_height = height,
      .output_width = width,
      .groups = kChannels,
      .output_increment = (kStride - kChannels) * sizeof(float),
      .unipass_ukernel = (xnn_dwconv_unipass_ukernel_fn)count_points,
  };
  num_calls = 0;
  pthreadpool_parallelize_2d(pool, (pthreadpool_task_2d_t)xnn_compute_dwconv_unipass, &context,
                             kBatch, height, 0);
  check(kBatch * height * width);
  const size_t rows = kBatch * height;
  const int is_divided = num_calls > (int)rows;
  failures += is_divided != (rows % threads != 0 && rows < 8 * threads && width > 1);
}

int main(void) {
  pthreadpool_t pool = etx_xnnpack_pool_create(kMostThreads, true);
  int cases = 0;
  for (size_t threads = 1; threads <= kMostThreads; ++threads) {
    struct etx_context context;
    memset(&context, 0, sizeof(context));
    context.num_threads = (uint32_t)threads;
    context.parallel_for = parallel_for;
    failures += etx_xnnpack_pool_use(pool, &context) != threads;
    for (size_t items = 0; items < kMostItems; items += 1 + items / 7, ++cases) {
      num_turns = 0, last = 0;
      pthreadpool_parallelize_1d(pool, (pthreadpool_task_1d_t)count_item, counts, items, 0);
      check(items);
      failures += items >= 64 * threads && num_turns > 48 * (int)threads;
    }
    for (height = 1; height <= kMostRows; ++height) {
      for (width = 1; width <= kMostWidth; ++width, ++cases) run_rows(pool, threads);
    }
  }
  pthreadpool_parallelize_1d(NULL, (pthreadpool_task_1d_t)count_item, counts, kMostItems, 0);
  check(kMostItems);
  etx_xnnpack_pool_destroy(pool);
  printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
