// SPDX-License-Identifier: BSD-3-Clause
/// Max pools of random windows, dilated ones too, are right: a window's largest number, also where
/// most of it is beyond the image. What is around the image is larger than all numbers in it.

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <xnnpack.h>

#include "initialize.h"

enum { kChannels = 3, kMostSide = 9, kAround = 4096, kCases = 4000 };

/// One axis of a pool. `padding` is before and behind.
typedef struct {
  uint32_t size, kernel, stride, padding[2], dilation;
} Axis;

static uint32_t below(uint32_t end) { return (uint32_t)rand() % end; }

static int reach(const Axis* a) { return (int)((a->kernel - 1) * a->dilation); }

static int outputs(const Axis* a) {
  const int last = (int)(a->padding[0] + a->size + a->padding[1]) - reach(a) - 1;
  return last < 0 ? 0 : last / (int)a->stride + 1;
}

static int place(const Axis* a, int output, int tap) {
  return output * (int)a->stride + tap * (int)a->dilation - (int)a->padding[0];
}

static bool is_inside(const Axis* a, int at) { return at >= 0 && at < (int)a->size; }

/// True where each window has a tap in the image.
static bool has_taps(const Axis* a) {
  for (int output = 0; output < outputs(a); ++output) {
    bool any = false;
    for (int tap = 0; tap < (int)a->kernel; ++tap) any |= is_inside(a, place(a, output, tap));
    if (!any) return false;
  }
  return outputs(a) > 0;
}

static Axis draw(void) {
  Axis a;
  do {
    const uint32_t kernel = 1 + below(4);  // XNNPACK refuses larger strides.
    a = (Axis){1 + below(kMostSide), kernel, 1 + below(kernel), {below(6), below(6)}, 1 + below(4)};
  } while (!has_taps(&a));
  return a;
}

static float expected(const Axis* y, const Axis* x, const float* image, int row, int column) {
  float most = -INFINITY;
  for (int i = 0; i < (int)y->kernel; ++i) {
    for (int j = 0; j < (int)x->kernel; ++j) {
      const int down = place(y, row, i), across = place(x, column, j);
      if (!is_inside(y, down) || !is_inside(x, across)) continue;
      most = fmaxf(most, image[(down * (int)x->size + across) * kChannels]);
    }
  }
  return most;
}

static bool is_right(const Axis* y, const Axis* x) {
  static float memory[2 * kAround + kMostSide * kMostSide * kChannels], found[1 << 16];
  float* const image = memory + kAround;
  for (size_t i = 0; i < sizeof(memory) / sizeof(float); ++i) memory[i] = 1e9f;
  for (size_t i = 0; i < y->size * x->size * kChannels; ++i) image[i] = (float)below(1000);
  xnn_operator_t pool = NULL;
  size_t height = 0, width = 0;
  bool right =
      xnn_create_max_pooling2d_nhwc_f32(y->padding[0], x->padding[1], y->padding[1], x->padding[0],
                                        y->kernel, x->kernel, y->stride, x->stride, y->dilation,
                                        x->dilation, -INFINITY, INFINITY, 0,
                                        &pool) == xnn_status_success &&
      xnn_reshape_max_pooling2d_nhwc_f32(pool, 1, y->size, x->size, kChannels, kChannels, kChannels,
                                         &height, &width, NULL) == xnn_status_success &&
      xnn_setup_max_pooling2d_nhwc_f32(pool, image, found) == xnn_status_success &&
      xnn_run_operator(pool, NULL) == xnn_status_success && (int)height == outputs(y) &&
      (int)width == outputs(x);
  for (int i = 0; right && i < (int)(height * width) * kChannels; ++i) {
    const int at = i / kChannels;
    right = found[i] == expected(y, x, image + i % kChannels, at / (int)width, at % (int)width);
  }
  xnn_delete_operator(pool);
  return right;
}

int main(void) {
  if (etx_xnnpack_initialize() != xnn_status_success) return 2;
  int failures = 0;
  for (int i = 0; i < kCases; ++i) {
    Axis y = draw(), x = draw();
    if (y.kernel * x.kernel == 1) y = (Axis){5, 2, 1, {1, 1}, 1};  // XNNPACK refuses single taps.
    failures += !is_right(&y, &x);
  }
  printf("%d cases, %d failures\n", kCases, failures);
  return failures != 0;
}
