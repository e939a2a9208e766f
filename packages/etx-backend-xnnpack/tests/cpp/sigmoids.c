// SPDX-License-Identifier: BSD-3-Clause
/// Sigmoids of numbers of every exponent, NaN and infinities too, in place and apart: among small
/// numbers, and among those whose exponentials overflow.
///
///     sigmoids [STRIDE]    looks at each STRIDE-th float; 1: at all, for half a minute

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack/config.h>

#include "initialize.h"

enum { kCount = 3000 };  // Several parts, and the rest of one.
static float input[kCount + XNN_EXTRA_BYTES / sizeof(float)], output[kCount];

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

static bool is_right(float x, float found) {
  if (isnan(x)) return isnan(found);
  if (x > 104.0f) return found == 1.0f;
  if (x < -104.0f) return found == 0.0f;
  const double expected = 1.0 / (1.0 + exp(-(double)x));
  return fabs(found - expected) <= 1e-6 * expected + 2e-38;
}

static int check(const struct xnn_unary_elementwise_config* config, size_t count, bool in_place) {
  union xnn_unary_uparams params;
  if (config->init != NULL) config->init(&params, NULL, NULL, NULL);
  memcpy(output, input, count * sizeof(float));
  config->ukernel(count * sizeof(float), in_place ? output : input, output, &params);
  int failures = 0;
  for (size_t i = 0; i < count; ++i) failures += !is_right(input[i], output[i]);
  return failures;
}

int main(int argc, char** argv) {
  const uint64_t stride = argc > 1 ? strtoull(argv[1], NULL, 10) : 1021;
  if (stride == 0 || etx_xnnpack_initialize() != xnn_status_success) return 2;
  const struct xnn_unary_elementwise_config* const config = xnn_init_f32_sigmoid_config();
  uint64_t cases = 0;
  int failures = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride * kCount) {
    for (size_t i = 0; i < kCount; ++i) {
      const bool is_large = i % 7 == 0 || cases % 2 == 0;
      input[i] = from_bits((uint32_t)(bits + i * stride) & (is_large ? UINT32_MAX : 0xbf8fffff));
    }
    const size_t count = kCount - cases % 40;
    failures += check(config, count, cases % 3 == 0);
    ++cases;
  }
  printf("%llu cases, %d failures\n", (unsigned long long)cases, failures);
  return failures != 0;
}
