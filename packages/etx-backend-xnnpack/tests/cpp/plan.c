// SPDX-License-Identifier: BSD-3-Clause
/// Values of random graphs lie where nothing overwrites them before their last reader, in less
/// memory than XNNPACK plans. Whose bytes are whose is followed from operation to operation.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack/memory-planner.h>
#include <xnnpack/subgraph.h>

#include "initialize.h"

enum { kMostNodes = 24, kMostValues = kMostNodes + 1, kCases = 5000, kLine = 64, kLines = 8192 };
static const size_t kSizes[] = {4, 64, 64, 400, 400, 1600, 6400};

typedef struct xnn_value_allocation_tracker Tracker;
void __real_xnn_plan_value_allocation_tracker(Tracker* tracker);

static struct xnn_operator_data nodes[kMostNodes];
static struct xnn_value values[kMostValues];
static struct xnn_runtime runtime;
static bool is_turned;

static uint32_t below(uint32_t end) { return (uint32_t)rand() % end; }

static bool is_elementwise(const struct xnn_operator_data* node) {
  return node->type == xnn_node_type_unary_elementwise ||
         node->type == xnn_node_type_binary_elementwise;
}

/// The number of the value that is made `i`-th, 0 the input: as they are made, or the other way.
static uint32_t number(uint32_t i) { return is_turned ? (uint32_t)runtime.num_values - 1 - i : i; }

/// Each node makes one value, the last one or another an output.
static void draw(void) {
  static const enum xnn_node_type kTypes[] = {xnn_node_type_unary_elementwise,
                                              xnn_node_type_binary_elementwise,
                                              xnn_node_type_convolution_2d};
  memset(nodes, 0, sizeof(nodes));
  memset(values, 0, sizeof(values));
  runtime = (struct xnn_runtime){.opdata = nodes, .values = values};
  runtime.num_ops = 1 + below(kMostNodes);
  runtime.num_values = runtime.num_ops + 1;
  is_turned = below(2) == 0;
  for (uint32_t i = 0; i < runtime.num_values; ++i) {
    struct xnn_value* const value = values + number(i);
    size_t size = kSizes[below(sizeof(kSizes) / sizeof(*kSizes))];
    const bool is_outside = i == 0 || i + 1 == runtime.num_values || below(9) == 0;
    if (i > 0) {
      struct xnn_operator_data* const node = nodes + i - 1;
      node->type = kTypes[below(3)];
      node->num_inputs = node->type == xnn_node_type_unary_elementwise ? 1 : 1 + below(2);
      node->num_outputs = 1;
      node->outputs[0] = number(i);
      node->workspace_size = node->type == xnn_node_type_convolution_2d ? below(2) * 500 : 0;
      for (uint32_t k = 0; k < node->num_inputs; ++k) {
        const uint32_t from = below(3) == 0 ? below(i) : i - 1 - below(i < 3 ? i : 3);
        const uint32_t input = number(from);
        node->inputs[k] = input;
        if (values[input].num_consumers++ == 0) values[input].first_consumer = i - 1;
      }
      if (is_elementwise(node)) {
        size = values[node->inputs[0]].size;
        for (uint32_t k = 1; k < node->num_inputs; ++k) {
          if (values[node->inputs[k]].size > size) size = values[node->inputs[k]].size;
        }
      }
    }
    *value = (struct xnn_value){
        .id = number(i),
        .type = xnn_value_type_dense_tensor,
        .datatype = xnn_datatype_fp32,
        .shape = {1, {size / sizeof(float)}},
        .size = size,
        .allocation_type =
            is_outside ? xnn_allocation_type_external : xnn_allocation_type_workspace,
    };
  }
}

static bool is_inside(uint32_t value) {
  return values[value].allocation_type == xnn_allocation_type_workspace;
}

/// As XNNPACK does before it plans; with `puts` results lie on arguments where both have one
/// reader.
static void begin(Tracker* tracker, bool puts) {
  xnn_init_value_allocation_tracker(tracker, &runtime);
  for (uint32_t i = 0; i < runtime.num_values; ++i) {
    if (is_inside(i)) {
      xnn_add_value_allocation_tracker(tracker, i, xnn_tensor_get_rounded_size(values + i));
    }
  }
  for (uint32_t at = 0; at < runtime.num_ops; ++at) {
    const struct xnn_operator_data* const node = nodes + at;
    const size_t size = node->workspace_size == 0 ? 0 : xnn_get_rounded_size(node->workspace_size);
    xnn_add_operator_workspace_allocation_tracker(tracker, (uint32_t)runtime.num_values + at, size,
                                                  at);
    const uint32_t from = node->inputs[0], into = node->outputs[0];
    if (puts && is_elementwise(node) && node->num_inputs == 1 && is_inside(from) &&
        is_inside(into) && values[from].num_consumers == 1 && values[into].num_consumers == 1 &&
        tracker->usage[from].reuse_value_id == XNN_INVALID_VALUE_ID) {
      xnn_mark_tensor_as_reuse(tracker, into, from, values[into].first_consumer);
    }
  }
}

/// Whether nothing else was written where a value lies.
static bool holds(const uint32_t* lines, const Tracker* tracker, uint32_t value, size_t size) {
  const size_t first = tracker->usage[value].alloc_offset / kLine;
  for (size_t i = first; i < first + (size + kLine - 1) / kLine; ++i) {
    if (i >= kLines || lines[i] != value) return false;
  }
  return true;
}

static void take(uint32_t* lines, const Tracker* tracker, uint32_t value, size_t size) {
  const size_t first = tracker->usage[value].alloc_offset / kLine;
  for (size_t i = first; i < kLines && i < first + (size + kLine - 1) / kLine; ++i) {
    lines[i] = value;
  }
}

static bool runs(const Tracker* tracker) {
  static uint32_t lines[kLines];
  memset(lines, 0, sizeof(lines));
  for (uint32_t at = 0; at < runtime.num_ops; ++at) {
    const struct xnn_operator_data* const node = nodes + at;
    const uint32_t into = node->outputs[0], scratch = (uint32_t)runtime.num_values + at;
    if (node->workspace_size != 0) take(lines, tracker, scratch, node->workspace_size);
    // What is not made element by element is written before all is read.
    if (!is_elementwise(node) && is_inside(into)) take(lines, tracker, into, values[into].size);
    for (uint32_t k = 0; k < node->num_inputs; ++k) {
      const uint32_t from = node->inputs[k];
      if (!is_inside(from)) continue;
      if (!holds(lines, tracker, from, values[from].size)) return false;
      const bool is_apart = !is_inside(into) ||
                            tracker->usage[from].alloc_offset != tracker->usage[into].alloc_offset;
      // A smaller argument is read again and again: it lies apart from what is written.
      if (is_elementwise(node) && values[from].size != values[into].size && !is_apart) return false;
    }
    if (node->workspace_size != 0 && !holds(lines, tracker, scratch, node->workspace_size)) {
      return false;
    }
    if (is_inside(into)) take(lines, tracker, into, values[into].size);
  }
  return true;
}

int main(void) {
  int failures = 0;
  size_t own = 0, theirs = 0;
  if (etx_xnnpack_initialize() != xnn_status_success) return 2;
  for (int i = 0; i < kCases; ++i) {
    draw();
    Tracker tracker;
    begin(&tracker, i % 2 == 0);
    xnn_plan_value_allocation_tracker(&tracker);
    own += tracker.mem_arena_size;
    if (!runs(&tracker)) ++failures;
    xnn_release_value_allocation_tracker(&tracker);
    begin(&tracker, i % 2 == 0);
    __real_xnn_plan_value_allocation_tracker(&tracker);
    theirs += tracker.mem_arena_size;
    if (!runs(&tracker)) ++failures;
    xnn_release_value_allocation_tracker(&tracker);
  }
  if (own >= theirs) ++failures;
  printf("%d cases, %d failures, %zu bytes, %zu of XNNPACK's plan\n", kCases, failures, own,
         theirs);
  return failures != 0;
}
