// SPDX-License-Identifier: BSD-3-Clause
/// Transposed convolutions of random windows are right, to the last bit of whole numbers: also
/// those whose padding leaves an output that is shorter than a stride.

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <xnnpack.h>

#include "initialize.h"

enum { kInputs = 2, kOutputs = 3, kMostSide = 7, kMostTaps = 5, kMostOutputs = 32, kCases = 4000 };

/// One axis. `padding` is cut from the output, before and behind.
typedef struct {
  uint32_t size, kernel, stride, padding[2], adjustment, dilation;
} Axis;

static uint32_t below(uint32_t end) { return (uint32_t)rand() % end; }

static int outputs(const Axis* a) {
  return (int)((a->size - 1) * a->stride + a->adjustment + (a->kernel - 1) * a->dilation + 1) -
         (int)(a->padding[0] + a->padding[1]);
}

static Axis draw(void) {
  Axis a;
  do {
    const uint32_t stride = 1 + below(4);
    const uint32_t dilation = below(3) == 0 ? 2 : 1;
    a = (Axis){1 + below(kMostSide),   1 + below(kMostTaps), stride,
               {below(12), below(12)}, below(stride),        dilation};
  } while (outputs(&a) <= 0 || outputs(&a) > kMostOutputs);
  return a;
}

/// Adds what each input gives to the outputs: the definition of the operator.
static void scatter(const Axis* y, const Axis* x, const float* in, const float* weight,
                    float* out) {
  const int height = outputs(y), width = outputs(x);
  for (uint32_t i = 0; i < y->size * x->size * y->kernel * x->kernel; ++i) {
    const uint32_t tap = i % (y->kernel * x->kernel), from = i / (y->kernel * x->kernel);
    const int row =
        (int)(from / x->size * y->stride + tap / x->kernel * y->dilation) - (int)y->padding[0];
    const int column =
        (int)(from % x->size * x->stride + tap % x->kernel * x->dilation) - (int)x->padding[0];
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    for (uint32_t o = 0; o < kOutputs; ++o) {
      for (uint32_t c = 0; c < kInputs; ++c) {
        out[(row * width + column) * kOutputs + (int)o] +=
            in[from * kInputs + c] * weight[(o * y->kernel * x->kernel + tap) * kInputs + c];
      }
    }
  }
}

static bool is_right(const Axis* y, const Axis* x) {
  static float in[kMostSide * kMostSide * kInputs + XNN_EXTRA_BYTES / sizeof(float)];
  static float weight[kOutputs * kMostTaps * kMostTaps * kInputs];
  static float expected[kMostOutputs * kMostOutputs * kOutputs];
  static float found[kMostOutputs * kMostOutputs * kOutputs + 1];
  const int values = outputs(y) * outputs(x) * kOutputs;
  for (size_t i = 0; i < sizeof(in) / sizeof(float); ++i) in[i] = (float)below(100);
  for (size_t i = 0; i < sizeof(weight) / sizeof(float); ++i) weight[i] = (float)below(100);
  for (int i = 0; i < values; ++i) expected[i] = 0.0f;
  for (int i = 0; i <= values; ++i) found[i] = -1.0f;
  scatter(y, x, in, weight, expected);
  xnn_operator_t op = NULL;
  size_t height = 0, width = 0;
  bool right =
      xnn_create_deconvolution2d_nhwc_f32(
          y->padding[0], x->padding[1], y->padding[1], x->padding[0], y->kernel, x->kernel,
          y->stride, x->stride, y->dilation, x->dilation, 1, kInputs, kOutputs, kInputs, kOutputs,
          weight, NULL, -INFINITY, INFINITY, 0, NULL, NULL, &op) == xnn_status_success &&
      xnn_reshape_deconvolution2d_nhwc_f32(op, 1, y->size, x->size, y->adjustment, x->adjustment,
                                           &height, &width, NULL) == xnn_status_success &&
      (int)height == outputs(y) && (int)width == outputs(x) &&
      xnn_setup_deconvolution2d_nhwc_f32(op, in, found) == xnn_status_success &&
      xnn_run_operator(op, NULL) == xnn_status_success && found[values] == -1.0f;
  for (int i = 0; right && i < values; ++i) right = found[i] == expected[i];
  xnn_delete_operator(op);
  return right;
}

int main(void) {
  if (etx_xnnpack_initialize() != xnn_status_success) return 2;
  int failures = 0, short_ones = 0;
  for (int i = 0; i < kCases; ++i) {
    const Axis y = draw(), x = draw();
    short_ones += outputs(&y) < (int)y.stride || outputs(&x) < (int)x.stride;
    failures += !is_right(&y, &x);
  }
  printf("%d of outputs that are shorter than a stride\n", short_ones);
  printf("%d cases, %d failures\n", kCases, failures);
  return failures != 0 || short_ones < kCases / 20;
}
