// SPDX-License-Identifier: BSD-3-Clause
/// What one core can do: multiplications and additions of floats or doubles a second with sums in
/// registers, and bytes copied a second.

#include <cstddef>
#include <cstring>
#include <vector>

#include <time.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#if defined(__aarch64__)
#define KEEP(value) asm volatile("" : "+w"(value))
#elif defined(__x86_64__)
#define KEEP(value) asm volatile("" : "+v"(value))
#else
#define KEEP(value) (void)value
#endif

/// CPU seconds of this thread: others may run, too.
static double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename T>
static double flops() {
  typedef T Vector __attribute__((vector_size(VECTOR_BYTES)));
  constexpr int kSums = 12, kRounds = 2000000, kLanes = VECTOR_BYTES / sizeof(T);
  Vector sums[kSums] = {}, a = Vector{} + T{1}, b = Vector{} + T(1e-9);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double begin = seconds();
    for (int i = 0; i < kRounds; ++i) {
      KEEP(a);
      KEEP(b);
#pragma GCC unroll 12
      for (int j = 0; j < kSums; ++j) sums[j] += a * b;
    }
    for (auto& sum : sums) KEEP(sum);
    const double spent = seconds() - begin;
    const double rate = 2.0 * kSums * kLanes * kRounds / spent;
    best = rate > best ? rate : best;
  }
  return best;
}

extern "C" double float_flops() { return flops<float>(); }
extern "C" double double_flops() { return flops<double>(); }

/// Bytes read and written of arrays that the second level of a cache holds.
extern "C" double copied_bytes() {
  constexpr size_t kBytes = 256 * 1024;
  constexpr int kRounds = 2000;
  std::vector<char> from(kBytes, 1), to(kBytes);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double begin = seconds();
    for (int i = 0; i < kRounds; ++i) {
      std::memcpy(to.data(), from.data(), kBytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    const double spent = seconds() - begin;
    const double rate = 2.0 * kBytes * kRounds / spent;
    best = rate > best ? rate : best;
  }
  return best;
}
