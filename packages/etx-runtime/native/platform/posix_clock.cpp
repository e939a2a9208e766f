// SPDX-License-Identifier: BSD-3-Clause
/// Nanoseconds, from the processor's counter where that runs at one rate on all cores: reading it
/// takes a third of a call of clock_gettime or less.

#include <atomic>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "os.h"

namespace etx {
namespace os {
namespace {

__extension__ using Wide = unsigned __int128;

/// Nanoseconds of a count are `ns + (count - first) * scale / 2^32`.
struct Line {
  uint64_t ns, first, scale;
  uint64_t at(uint64_t count) const {
    return ns + static_cast<uint64_t>(static_cast<Wide>(count - first) * scale >> 32);
  }
};

#if defined(__x86_64__)

enum State : int { kUnknown, kBusy, kLearning, kCounting, kNever };

/// How long the counter is compared with the clock: reading both is off by some 50 ns.
constexpr uint64_t kLearningNs = 20'000'000;
/// More counts between two reads than that: the process was interrupted.
constexpr uint64_t kInterrupted = 4000;

std::atomic<int> state{kUnknown};
Line line;

uint64_t monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// Whether the counter runs at one rate in every power state: CPUID's "invariant TSC".
bool runs_evenly() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

/// The clock, and the count at that time; false when it was interrupted in between.
bool read_both(uint64_t* ns, uint64_t* count) {
  const uint64_t before = __rdtsc();
  *ns = monotonic();
  const uint64_t after = __rdtsc();
  *count = before + (after - before) / 2;
  return after - before < kInterrupted;
}

/// A step from kUnknown or kLearning; other threads take the clock meanwhile.
int learn() {
  int from = state.load(std::memory_order_relaxed);
  const bool begins = from == kUnknown;
  uint64_t ns = 0, count = 0;
  if (from != kUnknown && from != kLearning) return from;
  if (!state.compare_exchange_strong(from, kBusy, std::memory_order_acquire)) return from;
  int next = begins ? kUnknown : kLearning;
  if (begins && !runs_evenly()) {
    next = kNever;
  } else if (read_both(&ns, &count)) {
    if (begins) {
      line = {ns, count, 0};
      next = kLearning;
    } else if (ns - line.ns >= kLearningNs && count > line.first) {
      const Wide scaled = static_cast<Wide>(ns - line.ns) << 32;
      line = {ns, count, static_cast<uint64_t>(scaled / (count - line.first))};
      next = kCounting;
    }
  }
  state.store(next, std::memory_order_release);
  return next;
}

#endif

}  // namespace

uint64_t nanoseconds() {
#if defined(__x86_64__)
  if (state.load(std::memory_order_acquire) == kCounting) return line.at(__rdtsc());
  if (state.load(std::memory_order_relaxed) != kNever) learn();
  return monotonic();
#elif defined(__aarch64__)
  uint64_t count, frequency;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  asm("mrs %0, cntfrq_el0" : "=r"(frequency));
  static const Line line = {0, 0, (uint64_t{1'000'000'000} << 32) / frequency};
  return line.at(count);
#else
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
#endif
}

}  // namespace os
}  // namespace etx
