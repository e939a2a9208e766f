// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_FAILURE_H_
#define ETX_FAILURE_H_

#include <cstdint>

#include <etx/abi.h>
#include <etx/error.h>
#include <etx/span.h>

namespace etx {

/// What went wrong and where, without a heap: the texts are literals or lie in the program.
struct Failure {
  Error error = Error::Ok;
  /// What was expected; null when nothing more is known than `error`.
  const char* reason = nullptr;
  /// The operator, backend, method or data key that is concerned, or null.
  const char* name = nullptr;
  /// The operator's overload, or null.
  const char* overload = nullptr;
  /// Byte offset in the program file, or -1.
  int64_t offset = -1;
  /// Index of the instruction, or -1.
  int32_t instruction = -1;
  /// Index of the input, output, value or argument that `reason` speaks of, or -1.
  int32_t index = -1;
  /// What the instruction was given, until `FailureSink::report` returns; empty where its arguments
  /// are not what is wrong.
  Span<etx_value* const> args;
};

/// Receives failures while a program or method is loaded; several, when several operators are
/// missing. Without one they go to `etx_pal_log`. Called on the thread that loads.
class FailureSink {
 public:
  virtual void report(const Failure& failure) = 0;

 protected:
  ~FailureSink() = default;
};

/// Sends `failure` to `sink`, or to the log when it is null; returns its error.
Error report(FailureSink* sink, const Failure& failure);

}  // namespace etx

#endif  // ETX_FAILURE_H_
