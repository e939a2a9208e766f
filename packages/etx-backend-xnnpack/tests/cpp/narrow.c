// SPDX-License-Identifier: BSD-3-Clause
/// Layers of any number of columns are right to the last bit, and those that take fewer blocks of
/// 16 columns than of 32, as times are compared, are multiplied by kernels for 16.

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <xnnpack/config.h>
#include <xnnpack/operator.h>

#include "initialize.h"

enum { kColumns = 150, kInputs = 12, kSide = 5, kRows = kSide * kSide, kTaps = 9 };
static float weight[kColumns * kTaps * kInputs], bias[kColumns];
static float input[kRows * kInputs + XNN_EXTRA_BYTES / sizeof(float)], found[kRows * kColumns];
static unsigned narrow, wide;

static void fill(float* numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) numbers[i] = (float)(rand() % 17 - 8);
}

/// Of a window of `side` x `side` around a point; beyond the image are zeros.
static float expected(size_t row, size_t column, size_t side) {
  float sum = bias[column];
  const float* w = weight + column * side * side * kInputs;
  for (size_t tap = 0; tap < side * side; ++tap, w += kInputs) {
    const size_t y = row / kSide + tap / side - side / 2, x = row % kSide + tap % side - side / 2;
    if (y >= kSide || x >= kSide) continue;  // Below zero, too.
    for (size_t i = 0; i < kInputs; ++i) sum += w[i] * input[(y * kSide + x) * kInputs + i];
  }
  return sum < 0.0f ? 0.0f : sum;
}

static bool is_right(size_t columns, size_t side, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      if (found[row * columns + column] != expected(row, column, side)) return false;
    }
  }
  return true;
}

static void count(xnn_operator_t layer, size_t columns, size_t side) {
  const unsigned nr = side > 1 ? layer->ukernel.igemm.nr : layer->ukernel.gemm.nr;
  if (nr == 16 && columns % 32 != 0 && columns % 32 <= 16) ++narrow;
  if (nr == 32) ++wide;
}

static bool run_linear(size_t columns, size_t rows) {
  xnn_operator_t layer = NULL;
  const bool is_done =
      xnn_create_fully_connected_nc_f32(kInputs, columns, kInputs, columns, weight, bias, 0.0f,
                                        INFINITY, 0, NULL, NULL, &layer) == xnn_status_success &&
      xnn_reshape_fully_connected_nc_f32(layer, rows, NULL) == xnn_status_success &&
      xnn_setup_fully_connected_nc_f32(layer, input, found) == xnn_status_success &&
      xnn_run_operator(layer, NULL) == xnn_status_success;
  if (is_done) count(layer, columns, 1);
  xnn_delete_operator(layer);
  return is_done && is_right(columns, 1, rows);
}

static bool run_convolution(size_t columns, size_t side) {
  xnn_operator_t layer = NULL;
  const uint32_t pad = (uint32_t)side / 2, taps = (uint32_t)side;
  size_t size = 0, alignment = 0, height = 0, width = 0;
  const bool is_reshaped =
      xnn_create_convolution2d_nhwc_f32(pad, pad, pad, pad, taps, taps, 1, 1, 1, 1, 1, kInputs,
                                        columns, kInputs, columns, weight, bias, 0.0f, INFINITY, 0,
                                        NULL, NULL, &layer) == xnn_status_success &&
      xnn_reshape_convolution2d_nhwc_f32(layer, 1, kSide, kSide, &size, &alignment, &height, &width,
                                         NULL) == xnn_status_success;
  void* const workspace = malloc(size + 1);
  const bool is_done =
      is_reshaped && height == kSide && width == kSide &&
      xnn_setup_convolution2d_nhwc_f32(layer, workspace, input, found) == xnn_status_success &&
      xnn_run_operator(layer, NULL) == xnn_status_success;
  if (is_done) count(layer, columns, side);
  xnn_delete_operator(layer);
  free(workspace);
  return is_done && is_right(columns, side, kRows);
}

int main(void) {
  if (etx_xnnpack_initialize() != xnn_status_success) return 2;
  const struct xnn_gemm_config* const config = xnn_init_f32_gemm_config();
  const bool is_wide = config->nr == 32 && config->mr == 7;
  int cases = 0, failures = 0;
  for (size_t columns = 1; columns <= kColumns; ++columns, cases += 4) {
    fill(weight, sizeof(weight) / sizeof(float));
    fill(bias, kColumns);
    fill(input, kRows * kInputs);
    failures += !run_linear(columns, 1) + !run_linear(columns, kRows);
    failures += !run_convolution(columns, 1) + !run_convolution(columns, 3);
  }
  // 1 to 16, 33 to 48 and 65 to 80 at least, four times each.
  if (is_wide && (narrow < 3 * 16 * 4 || wide == 0)) ++failures;
  printf("%d cases, %d failures, %u narrow, %u wide\n", cases, failures, narrow, wide);
  return failures != 0;
}
