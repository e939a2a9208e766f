// SPDX-License-Identifier: BSD-3-Clause
#include "isa/integer/integer.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "isa/amx.h"

#if defined(ETX_INTEGER_ARM_LEVELS)
#include <sys/auxv.h>
#endif

#if !defined(ETX_ONE_LEVEL)
namespace etx::portable {

extern const Integer integer_base;

#if defined(ETX_INTEGER_X86_LEVELS) || defined(ETX_INTEGER_ARM_LEVELS)
namespace {

struct Level {
  const Integer* table;
  bool (*runs)();
};

}  // namespace

#if defined(ETX_INTEGER_X86_LEVELS)
extern const Integer integer_v3;
extern const Integer integer_v3_vnni;
extern const Integer integer_v4_vnni;
#if defined(ETX_INTEGER_AMX)
extern const Integer integer_v4_amx;
#endif

namespace {

bool runs_v3() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/// AVX-VNNI is bit 4 of eax of leaf 7, subleaf 1; compilers do not know it by name yet.
bool runs_v3_vnni() {
  uint32_t a = 7, b = 0, c = 1, d = 0;
  uint32_t leaves = 0;
  __asm__("cpuid" : "=a"(leaves), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  if (!runs_v3() || leaves < 1) return false;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
  return (a >> 4 & 1) != 0;
}

bool runs_v4_vnni() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

#if defined(ETX_INTEGER_AMX)
bool runs_v4_amx() { return runs_v4_vnni() && has_amx(); }
#endif

/// The best first.
constexpr Level kLevels[] = {
#if defined(ETX_INTEGER_AMX)
    {&integer_v4_amx, runs_v4_amx},
#endif
    {&integer_v4_vnni, runs_v4_vnni},
    {&integer_v3_vnni, runs_v3_vnni},
    {&integer_v3, runs_v3}};

}  // namespace
#else
extern const Integer integer_dotprod;
extern const Integer integer_i8mm;

namespace {

bool runs_dotprod() { return (getauxval(AT_HWCAP) >> 20 & 1) != 0; }

bool runs_i8mm() { return runs_dotprod() && (getauxval(AT_HWCAP2) >> 13 & 1) != 0; }

/// The best first.
constexpr Level kLevels[] = {{&integer_i8mm, runs_i8mm}, {&integer_dotprod, runs_dotprod}};

}  // namespace
#endif

namespace {

/// Levels above the one that is asked for are left out; "v4" asks for all that a v4 may have.
const Integer* choose() {
  const char* const asked = std::getenv("ETX_KERNELS_ISA");
  if (asked != nullptr && std::strcmp(asked, "base") == 0) return &integer_base;
  bool known = false;
  for (const Level& level : kLevels) {
    known |= asked != nullptr && std::strcmp(asked, level.table->name) == 0;
  }
  for (const Level& level : kLevels) {
    if (known && std::strcmp(asked, level.table->name) != 0) continue;
    known = false;
    if (level.runs()) return level.table;
  }
  return &integer_base;
}

std::atomic<const Integer*> chosen{nullptr};

}  // namespace

const Integer& integer() {
  const Integer* table = chosen.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = choose();
    chosen.store(table, std::memory_order_release);
  }
  return *table;
}
#else
const Integer& integer() { return integer_base; }
#endif

}  // namespace etx::portable
#endif
