// SPDX-License-Identifier: BSD-3-Clause
/// Start of a Cortex-M (Arm's architecture reference manuals of v6-M to v8.1-M, "Vector table").

#include <cstdint>

#include "semihosting.h"

int main();

namespace {

/// The exit code of an image that a fault stopped, or whose results nothing stands for.
constexpr int kStopped = 139;

}  // namespace

extern "C" {
extern uint32_t stack_top[], data_load[], data_begin[], data_end[], bss_begin[], bss_end[];
extern uint32_t stack_bottom[];

/// Says so where the stack reaches its end: what it wrote below it, nothing else notices.
bool is_stack_full() {
  if (*stack_bottom == etx_board::kPaint) return false;
  etx_board::print("FAILED: stack full, see --stack\n");
  return true;
}

[[noreturn]] void start() {
  etx_board::paint_stack(stack_bottom);
  const uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to != data_end; ++to) *to = *from++;
  for (uint32_t* to = bss_begin; to != bss_end; ++to) *to = 0;
  const int code = main();
  etx_board::leave(is_stack_full() ? kStopped : code);
}

/// Turns the FPU and the vector unit on before any compiled function may use them.
__attribute__((naked)) void reset() {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  asm volatile(
      "ldr r0, =0xE000ED88\n ldr r1, [r0]\n orr r1, r1, #0xF00000\n str r1, [r0]\n dsb\n isb\n"
      "bl start\n .ltorg");
#else
  asm volatile("bl start");
#endif
}

/// The processor pushed r0-r3, r12, lr, pc and psr before it came here.
[[noreturn]] void report_fault(const uint32_t* frame) {
  etx_board::print("FAULT: the processor stopped at address ");
  etx_board::print_hex(frame[6]);
  etx_board::print("\n");
  is_stack_full();
  etx_board::leave(kStopped);
}
__attribute__((naked)) void fault() { asm volatile("mov r0, sp\n bl report_fault"); }

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
    fault,
};
}
