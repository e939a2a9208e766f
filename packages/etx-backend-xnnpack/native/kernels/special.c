// SPDX-License-Identifier: BSD-3-Clause
/// XNNPACK 2024-11 refines an estimate of a root, on x86 by steps that overflow: sqrt(inf) is NaN,
/// 1/sqrt(0) too, and roots of more than 8e37 are half too large. Its logarithm has no NaN,
/// infinity or more than 88.38. With AVX-512 its sigmoid of 1e30 is NaN. Here roots are those of
/// the processor, logarithms that it does not have are those of the C library, and a sigmoid is
/// that of a number whose exponential is one.

#include "kernels/special.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xnnpack/config.h>
#if XNN_ARCH_X86 || XNN_ARCH_X86_64
#include <xmmintrin.h>
#endif

enum { kBlock = 128, kBehind = 64, kPart = 1024 };
static const float kMost = 2.0e38f;
static xnn_vunary_ukernel_fn log_of_most;

#if XNN_ARCH_X86 || XNN_ARCH_X86_64
static void roots(size_t bytes, const void* from, void* into,
                  const union xnn_unary_uparams* params) {
  (void)params;
  const float* x = from;
  float* y = into;
#pragma GCC ivdep
  for (size_t i = 0; i < bytes / sizeof(float); ++i) y[i] = sqrtf(x[i]);
}

static void reciprocal_roots(size_t bytes, const void* from, void* into,
                             const union xnn_unary_uparams* params) {
  (void)params;
  const float* x = from;
  float* y = into;
#pragma GCC ivdep
  for (size_t i = 0; i < bytes / sizeof(float); ++i) y[i] = 1.0f / sqrtf(x[i]);
}

static xnn_vunary_ukernel_fn sigmoid_of_few;

/// Beyond 104 and -104 a sigmoid is 1 and 0.
static void sigmoids_of_large(size_t count, const float* from, float* into,
                              const union xnn_unary_uparams* params) {
  float x[kBlock + kBehind / sizeof(float)];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t here = count - at < kBlock ? count - at : kBlock;
    for (size_t i = 0; i < here; ++i) {
      const float above = from[at + i] < -1000.0f ? -1000.0f : from[at + i];
      x[i] = above > 1000.0f ? 1000.0f : above;
    }
    sigmoid_of_few(here * sizeof(float), x, into + at, params);
  }
}

/// What is wrong is NaN of what is not: an invalid operation, which the processor remembers. A
/// result that lies on its argument is written when it is right.
static void sigmoids(size_t bytes, const void* from, void* into,
                     const union xnn_unary_uparams* params) {
  float part[kPart];
  const float* x = from;
  float* y = into;
  const size_t most = from == into ? kPart : SIZE_MAX;
  const unsigned flags = _mm_getcsr();
  for (size_t left = bytes / sizeof(float); left > 0;) {
    const size_t count = left < most ? left : most;
    float* const here = from == into ? part : y;
    _mm_setcsr(flags & ~(unsigned)_MM_EXCEPT_INVALID);
    sigmoid_of_few(count * sizeof(float), x, here, params);
    if ((_mm_getcsr() & _MM_EXCEPT_INVALID) != 0) sigmoids_of_large(count, x, here, params);
    if (here != y) memcpy(y, here, count * sizeof(float));
    x += count, y += count, left -= count;
  }
  _mm_setcsr(flags);
}
#endif

static void logarithms(size_t bytes, const void* from, void* into,
                       const union xnn_unary_uparams* params) {
  float x[kBlock + kBehind / sizeof(float)];
  const float* source = from;
  float* y = into;
  for (size_t left = bytes / sizeof(float); left > 0;) {
    const size_t count = left < kBlock ? left : kBlock;
    memcpy(x, source, count * sizeof(float));
    log_of_most(count * sizeof(float), x, y, params);
    for (size_t i = 0; i < count; ++i) {
      if (!(x[i] <= kMost)) y[i] = logf(x[i]);
    }
    source += count, y += count, left -= count;
  }
}

/// Puts a function in the place of a configuration's; returns that one.
static xnn_vunary_ukernel_fn replace(const struct xnn_unary_elementwise_config* config,
                                     xnn_vunary_ukernel_fn function) {
  struct xnn_unary_elementwise_config* const own =
      (struct xnn_unary_elementwise_config*)(uintptr_t)config;
  const xnn_vunary_ukernel_fn given = own == NULL ? NULL : own->ukernel;
  if (given != NULL) own->ukernel = function;
  return given;
}

void etx_xnnpack_use_special(void) {
#if XNN_ARCH_X86 || XNN_ARCH_X86_64
  replace(xnn_init_f32_sqrt_config(), roots);
  replace(xnn_init_f32_rsqrt_config(), reciprocal_roots);
  if (__builtin_cpu_supports("avx512f")) {
    sigmoid_of_few = replace(xnn_init_f32_sigmoid_config(), sigmoids);
  }
#endif
  const struct xnn_unary_elementwise_config* const log = xnn_init_f32_log_config();
  if (log == NULL) return;
  log_of_most = log->ukernel;
  replace(log, logarithms);
}
