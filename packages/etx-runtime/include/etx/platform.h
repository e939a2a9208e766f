/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETX_PLATFORM_H_
#define ETX_PLATFORM_H_

/// What the core asks of the platform. Define these functions to replace the defaults: without a
/// hosted library the clock stands at 0 and messages vanish.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How grave a message is, from below: debug, info, error, fatal.
enum etx_log_level {
  ETX_LOG_DEBUG = 'D',
  ETX_LOG_INFO = 'I',
  ETX_LOG_ERROR = 'E',
  ETX_LOG_FATAL = 'F'
};

/// A monotonic clock. May be called from any thread.
uint64_t etx_pal_current_ticks(void);

/// Takes a message: a literal, and a name it is about or null. May be called from any thread.
void etx_pal_log(enum etx_log_level level, const char* message, const char* name);

#ifdef __cplusplus
}
#endif

#endif  // ETX_PLATFORM_H_
