// SPDX-License-Identifier: BSD-3-Clause
/// Start of a Cortex-M (Armv7-M and Armv8-M Architecture Reference Manuals, "Vector table").

#include <cstdint>

int main();

extern "C" {
extern uint32_t stack_top[], data_load[], data_begin[], data_end[], bss_begin[], bss_end[];
[[noreturn]] void exit_program(int code);
[[noreturn]] void report_fault(const uint32_t* frame);
void count_wrap();

[[noreturn]] void reset() {
  volatile uint32_t& cpacr = *reinterpret_cast<volatile uint32_t*>(0xE000ED88);
  cpacr = cpacr | 0xFu << 20;
  asm volatile("dsb\n isb" ::: "memory");
  const uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to != data_end; ++to) *to = *from++;
  for (uint32_t* to = bss_begin; to != bss_end; ++to) *to = 0;
  exit_program(main());
}

/// The processor pushed r0-r3, r12, lr, pc and psr before it came here.
__attribute__((naked)) void fault() { asm volatile("mov r0, sp\n b report_fault"); }

using Handler = void (*)();
__attribute__((section(".vectors"), used)) const Handler vectors[16] = {
    reinterpret_cast<Handler>(stack_top),
    reset,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    count_wrap,
};
}
