// SPDX-License-Identifier: BSD-3-Clause
/// Multiplications and additions of bytes a second that one core can do: only sums in registers.

#include <chrono>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
using Vector = __m512i;
static Vector step(Vector sum, Vector a, Vector b) { return _mm512_dpbusd_epi32(sum, a, b); }
#elif defined(__AVXVNNI__)
#include <immintrin.h>
using Vector = __m256i;
static Vector step(Vector sum, Vector a, Vector b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
using Vector = int32x4_t;
static Vector step(Vector sum, Vector a, Vector b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#else
#define NO_DOT_PRODUCT
#endif

/// A value in a register that the compiler must not know.
#if defined(__aarch64__)
#define KEEP(value) asm volatile("" : "+w"(value))
#else
#define KEEP(value) asm volatile("" : "+v"(value))
#endif

/// The best of `rounds` loops; 0 without a dot product of bytes.
extern "C" double peak(int rounds) {
#if defined(NO_DOT_PRODUCT)
  (void)rounds;
  return 0;
#else
  constexpr int kSums = 12, kSteps = 20000;
  Vector sums[kSums] = {}, a = {}, b = {};
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) {
      KEEP(a);
      KEEP(b);
#pragma GCC unroll 16
      for (int k = 0; k < kSums; ++k) sums[k] = step(sums[k], a, b);
    }
#pragma GCC unroll 16
    for (int k = 0; k < kSums; ++k) KEEP(sums[k]);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const double speed = 2.0 * sizeof(Vector) * kSums * kSteps / seconds.count();
    best = speed > best ? speed : best;
  }
  return best;
#endif
}
