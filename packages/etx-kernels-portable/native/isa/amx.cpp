// SPDX-License-Identifier: BSD-3-Clause
#include "isa/amx.h"

#if defined(ETX_TILE_MODEL)
#include <cstdlib>
#include <cstring>

namespace etx::portable {

/// The model is slow: it takes part where it is asked for.
bool has_amx() {
  const char* const asked = std::getenv("ETX_KERNELS_ISA");
  return asked != nullptr && std::strstr(asked, "amx") != nullptr;
}

}  // namespace etx::portable
#elif defined(__linux__) && defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace etx::portable {
namespace {

/// Bits of edx of leaf 7 (Intel, Software Developer's Manual, volume 2, CPUID).
constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24, kInt8 = 1u << 25;
/// A request for a part of the processor's state, and which one: the data of tiles (Linux,
/// Documentation/arch/x86/xstate.rst).
constexpr long kRequest = 0x1023, kTileData = 18;

bool ask() {
  constexpr unsigned kAll = kBfloat16 | kTiles | kInt8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

bool has_amx() {
  static std::atomic<int> known{-1};
  int has = known.load(std::memory_order_relaxed);
  if (has < 0) {
    has = ask() ? 1 : 0;
    known.store(has, std::memory_order_relaxed);
  }
  return has == 1;
}

}  // namespace etx::portable
#else
namespace etx::portable {

bool has_amx() { return false; }

}  // namespace etx::portable
#endif
