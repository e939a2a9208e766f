// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_HOSTED_LOG_H_
#define ETX_HOSTED_LOG_H_

#include <string>

#include <etx/error.h>
#include <etx/platform.h>

namespace etx {

/// Takes a message of `level` without a line end; `message` is valid only during the call. Called
/// on the thread that has something to say, several at once; must not throw.
using LogSink = void (*)(void* user, etx_log_level level, const char* message);

/// Messages below `minimum` are dropped; ETX_LOG_ERROR unless set. From any thread.
void set_log_level(etx_log_level minimum);
etx_log_level log_level();
/// True when messages of `level` are not dropped.
bool is_logged(etx_log_level level);

/// Sends messages to `sink`, or to stderr again when it is null. When this returns, the former sink
/// is not called any more. From any thread. Errors: InvalidState from within a sink.
Error set_log_sink(LogSink sink, void* user);

/// Logs `message`: for plugins of the program itself and embedders. From any thread.
void log(etx_log_level level, const std::string& message);

}  // namespace etx

#endif  // ETX_HOSTED_LOG_H_
