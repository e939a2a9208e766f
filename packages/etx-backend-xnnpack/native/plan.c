// SPDX-License-Identifier: BSD-3-Clause
/// Where the values of a workspace lie. XNNPACK 2024-11 puts a result on its argument if each has
/// one reader: a sum of a residual block, which is read twice, lies apart. And it puts nothing
/// below the first value that is alive. A linker puts these functions in the place of XNNPACK's
/// (--wrap): results lie on an argument that is read for the last time, and large values first,
/// each in the smallest gap that takes it. Less memory is read and written.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <xnnpack/memory-planner.h>
#include <xnnpack/subgraph.h>

typedef struct xnn_usage_record Usage;
typedef struct xnn_value_allocation_tracker Tracker;

static _Thread_local const struct xnn_runtime* planned;

void __real_xnn_init_value_allocation_tracker(Tracker* tracker, const struct xnn_runtime* runtime);
void __wrap_xnn_init_value_allocation_tracker(Tracker* tracker, const struct xnn_runtime* runtime);
void __real_xnn_plan_value_allocation_tracker(Tracker* tracker);
void __wrap_xnn_plan_value_allocation_tracker(Tracker* tracker);

void __wrap_xnn_init_value_allocation_tracker(Tracker* tracker, const struct xnn_runtime* runtime) {
  planned = runtime;
  __real_xnn_init_value_allocation_tracker(tracker, runtime);
}

/// The value whose memory a value lies in.
static uint32_t home(const Usage* usage, uint32_t value) {
  while (usage[value].reuse_value_id != XNN_INVALID_VALUE_ID) value = usage[value].reuse_value_id;
  return value;
}

static bool has_memory(uint32_t value) {
  return value != XNN_INVALID_VALUE_ID &&
         planned->values[value].allocation_type == xnn_allocation_type_workspace;
}

/// Puts the result of operation number `at`, element by element, on the first argument that dies.
static void put_on_argument(Tracker* tracker, uint32_t at) {
  const struct xnn_operator_data* const node = planned->opdata + at;
  const uint32_t result = node->outputs[0];
  if (node->type != xnn_node_type_unary_elementwise &&
      node->type != xnn_node_type_binary_elementwise) {
    return;
  }
  const Usage* const usage = tracker->usage;
  if (!has_memory(result) || usage[result].reuse_value_id != XNN_INVALID_VALUE_ID) return;
  const size_t bytes = xnn_tensor_get_size(planned->values + result);
  for (uint32_t i = 0; i < node->num_inputs; ++i) {
    const uint32_t input = node->inputs[i];
    if (!has_memory(input) || xnn_tensor_get_size(planned->values + input) != bytes) continue;
    const uint32_t place = home(usage, input);
    if (usage[place].last_node != at || usage[place].tensor_size < usage[result].tensor_size) {
      continue;
    }
    xnn_mark_tensor_as_reuse(tracker, result, place, usage[result].last_node);
    return;
  }
}

/// Large ones first, then as they are made.
static int compare(const void* first, const void* second) {
  const Usage* const a = *(Usage* const*)first;
  const Usage* const b = *(Usage* const*)second;
  if (a->tensor_size != b->tensor_size) return a->tensor_size > b->tensor_size ? -1 : 1;
  if (a->first_node != b->first_node) return a->first_node < b->first_node ? -1 : 1;
  return (a > b) - (a < b);
}

static bool live_together(const Usage* a, const Usage* b) {
  return a->first_node <= b->last_node && b->first_node <= a->last_node;
}

/// The start of the smallest gap for `usage` among `count` values in the order of their places.
static size_t find_gap(const Usage* usage, Usage* const* placed, size_t count) {
  size_t end = 0, best = SIZE_MAX, least = SIZE_MAX;
  for (size_t i = 0; i < count; ++i) {
    const Usage* const other = placed[i];
    if (!live_together(usage, other)) continue;
    if (other->alloc_offset > end) {
      const size_t gap = other->alloc_offset - end;
      if (gap >= usage->tensor_size && gap < least) best = end, least = gap;
    }
    const size_t behind = other->alloc_offset + other->tensor_size;
    if (behind > end) end = behind;
  }
  return best != SIZE_MAX ? best : end;
}

/// Gives values their places, in `list` of `count` records; returns the bytes that all take.
static size_t place_all(Usage** list, size_t count) {
  size_t size = 0;
  qsort(list, count, sizeof(*list), compare);
  for (size_t i = 0; i < count; ++i) {
    Usage* const usage = list[i];
    usage->alloc_offset = find_gap(usage, list, i);
    const size_t behind = usage->alloc_offset + usage->tensor_size;
    if (behind > size) size = behind;
    size_t at = i;
    for (; at > 0 && list[at - 1]->alloc_offset > usage->alloc_offset; --at)
      list[at] = list[at - 1];
    list[at] = usage;
  }
  return size;
}

void __wrap_xnn_plan_value_allocation_tracker(Tracker* tracker) {
  const size_t values = planned->num_values, all = values + planned->num_ops;
  Usage* const usage = tracker->usage;
  Usage** const list = malloc((all + 1) * sizeof(*list));
  if (list == NULL) {
    __real_xnn_plan_value_allocation_tracker(tracker);
    return;
  }
  for (uint32_t at = 0; at < planned->num_ops; ++at) put_on_argument(tracker, at);
  size_t count = 0;
  for (size_t i = 0; i < all; ++i) {
    if (usage[i].tensor_size != 0) list[count++] = usage + i;
  }
  tracker->mem_arena_size = place_all(list, count);
  free(list);
  for (uint32_t i = 0; i < values; ++i) {
    if (usage[i].reuse_value_id != XNN_INVALID_VALUE_ID) {
      usage[i].alloc_offset = usage[home(usage, i)].alloc_offset;
    }
  }
}
