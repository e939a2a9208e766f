// SPDX-License-Identifier: BSD-3-Clause
/// What one core can do: multiplications and additions of int8 a second with sums in registers,
/// as bytes or, at AVX2, as words; and bytes read from memory.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

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
#elif defined(__AVX2__)
#include <immintrin.h>
using Vector = __m256i;
#define NUMBER_BYTES 2
static Vector step(Vector sum, Vector a, Vector b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
#else
#define NO_DOT_PRODUCT
#endif
#if !defined(NUMBER_BYTES)
#define NUMBER_BYTES 1
#endif

/// A value in a register that the compiler must not know.
#if defined(__aarch64__)
#define KEEP(value) asm volatile("" : "+w"(value))
#else
#define KEEP(value) asm volatile("" : "+v"(value))
#endif

/// The best of `rounds` loops; 0 where there is neither.
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
    const double speed = 2.0 * sizeof(Vector) / NUMBER_BYTES * kSums * kSteps / seconds.count();
    best = speed > best ? speed : best;
  }
  return best;
#endif
}

/// Bytes a second of one pass over `bytes` of memory, the best of `rounds`.
extern "C" double bandwidth(int64_t bytes, int rounds) {
  const std::vector<uint64_t> memory(static_cast<size_t>(bytes) / sizeof(uint64_t), 1);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= memory.size(); i += 8) {
      __builtin_prefetch(memory.data() + i + 512);
      for (size_t k = 0; k < 8; ++k) sums[k] += memory[i + k];
    }
    for (uint64_t& sum : sums) asm volatile("" : "+r"(sum));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const double speed = static_cast<double>(bytes) / seconds.count();
    best = speed > best ? speed : best;
  }
  return best;
}
