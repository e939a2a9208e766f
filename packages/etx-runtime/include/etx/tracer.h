// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TRACER_H_
#define ETX_TRACER_H_

#include <cstdint>

#include <etx/error.h>
#include <etx/span.h>
#include <etx/value.h>

namespace etx {

/// One executed instruction, or the one that failed.
struct TraceEvent {
  enum class Kind : uint8_t { Kernel, Delegate, Move, Jump, Free };
  Kind kind;
  uint32_t chain;
  uint32_t instruction;
  /// Operator or backend; null for the other kinds. Lives as long as the program.
  const char* name;
  const char* overload;
  /// The kernel's row, see etx_kernel; null for the other kinds.
  const char* signature;
  Error error;
  /// Ticks of `etx_pal_current_ticks`. In one execution an event starts where the one before ended.
  uint64_t start;
  uint64_t end;
  /// The instruction's values after it ran: inputs, then outputs.
  Span<etx_value* const> args;
};

/// What a thread did of a `Parallel::parallel_for` that several threads ran.
struct ThreadEvent {
  uint32_t chain;
  uint32_t instruction;
  /// As Parallel::thread() says.
  uint32_t thread;
  /// How many of the items, between the start of its first range and the end of its last.
  uint64_t items;
  uint64_t start;
  uint64_t end;
};

/// Something within a delegate, told while its instruction runs: see etx_delegate_event.
struct DelegateEvent {
  uint32_t chain;
  uint32_t instruction;
  const etx_delegate_event& event;
};

/// Watches a method being loaded and executed, on the thread that does so; must outlive the method.
class EventTracer {
 public:
  /// A method was loaded, or its loading failed with `error`.
  virtual void load(const char* method, Error error, uint64_t start, uint64_t end) = 0;
  virtual void begin_execution(const char* method) = 0;
  virtual void event(const TraceEvent& event) = 0;
  virtual void delegate_event(const DelegateEvent& event) = 0;
  /// After the `parallel_for`, before the event of its instruction; for up to 64 threads of it.
  virtual void thread_event(const ThreadEvent&) {}
  /// A kernel or delegate took scratch memory, or asked for more than there is.
  virtual void allocation(uint32_t instruction, uint64_t size) = 0;
  /// `start` and `end` enclose the whole execution; called when it fails, too.
  virtual void end_execution(uint64_t start, uint64_t end) = 0;
  /// After the end of an execution that did not fail: each output of the method.
  virtual void output(uint32_t index, const etx_value& value) = 0;

 protected:
  ~EventTracer() = default;
};

}  // namespace etx

#endif  // ETX_TRACER_H_
