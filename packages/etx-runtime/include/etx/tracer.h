// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TRACER_H_
#define ETX_TRACER_H_

#include <cstdint>

#include <etx/span.h>
#include <etx/value.h>

namespace etx {

/// One executed instruction.
struct TraceEvent {
  enum class Kind : uint8_t { Kernel, Delegate, Move, Jump, Free };
  Kind kind;
  uint32_t instruction;
  /// Operator or backend; null for the other kinds. Lives as long as the program.
  const char* name;
  const char* overload;
  /// Ticks of `etx_pal_current_ticks`.
  uint64_t start;
  uint64_t end;
  /// The instruction's values after it ran: inputs, then outputs.
  Span<etx_value* const> args;
};

/// Watches a method execute, on the thread that executes it; must outlive the method.
class EventTracer {
 public:
  virtual void begin_execution(const char* method) = 0;
  virtual void event(const TraceEvent& event) = 0;
  /// `start` and `end` enclose the whole execution; called when it fails, too.
  virtual void end_execution(uint64_t start, uint64_t end) = 0;

 protected:
  ~EventTracer() = default;
};

}  // namespace etx

#endif  // ETX_TRACER_H_
