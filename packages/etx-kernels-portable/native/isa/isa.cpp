// SPDX-License-Identifier: BSD-3-Clause
#include "isa/isa.h"
#include "isa/amx.h"
#include "isa/pairs.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(ETX_ISA_X86_LEVELS)
#include <cpuid.h>
#endif

#if !defined(ETX_ONE_LEVEL)
namespace etx::portable {

extern const Isa isa_base;

#if defined(ETX_ISA_X86_LEVELS)
extern const Isa isa_v3;
extern const Isa isa_v4;

namespace {

bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool runs_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const Isa* choose() {
  const char* const asked = std::getenv("ETX_KERNELS_ISA");
  const bool base = asked != nullptr && std::strcmp(asked, "base") == 0;
  const bool below_v4 = base || (asked != nullptr && std::strcmp(asked, "v3") == 0);
  if (!below_v4 && runs_v4()) return &isa_v4;
  if (!base && runs_v3()) return &isa_v3;
  return &isa_base;
}

std::atomic<const Isa*> chosen{nullptr};

}  // namespace

const Isa& isa() {
  const Isa* table = chosen.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = choose();
    chosen.store(table, std::memory_order_release);
  }
  return *table;
}
#else
const Isa& isa() { return isa_base; }
#endif

#if defined(ETX_ISA_X86_PAIRS)
extern const Pairs pairs_v4;
extern const Pairs pairs_amx;

namespace {

/// Of Intel's processors, those that have tiles (as those with float16 do) take four times as long
/// for a dot product of pairs as for a multiplication and addition of floats.
const Pairs* choose_pairs() {
  const char* const asked = std::getenv("ETX_KERNELS_ISA");
  const bool always = asked != nullptr && std::strcmp(asked, "pairs") == 0;
  const bool tiles = asked == nullptr || std::strcmp(asked, "amx") == 0;
  if (!(always || tiles) || !runs_v4() || !__builtin_cpu_supports("avx512bf16")) return nullptr;
  if (tiles && has_amx()) return &pairs_amx;
  constexpr unsigned kFloat16 = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool known = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
  const bool slow = known && __builtin_cpu_is("intel") && (d & kFloat16) != 0;
  return always || !slow ? &pairs_v4 : nullptr;
}

constexpr Pairs kNoPairs{};
std::atomic<const Pairs*> chosen_pairs{&kNoPairs};

}  // namespace

const Pairs* pairs() {
  const Pairs* table = chosen_pairs.load(std::memory_order_relaxed);
  if (table == &kNoPairs) {
    table = choose_pairs();
    chosen_pairs.store(table, std::memory_order_relaxed);
  }
  return table;
}
#else
const Pairs* pairs() { return nullptr; }
#endif

}  // namespace etx::portable
#endif
