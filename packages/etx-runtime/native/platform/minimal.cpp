// SPDX-License-Identifier: BSD-3-Clause
#include <etx/platform.h>

extern "C" {

__attribute__((weak)) uint64_t etx_pal_current_ticks(void) { return 0; }

__attribute__((weak)) void etx_pal_log(enum etx_log_level, const char*, const char*) {}
}
