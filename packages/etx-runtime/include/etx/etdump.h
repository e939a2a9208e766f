// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ETDUMP_H_
#define ETX_ETDUMP_H_

#include <cstddef>
#include <cstdint>

#include <etx/span.h>
#include <etx/tracer.h>

namespace etx {

/// Records what methods do as an ETDump, in memory of the caller.
///
/// Give it to `Program::load_method`, so that its events begin with the load, or to
/// `Method::set_tracer`; execute, and write `get_etdump_data()` to a file. What does not fit is
/// counted: the dump says how many events are missing and how many bytes would have held them.
/// Used by one thread at a time.
class ETDumpGen final : public EventTracer {
 public:
  /// An event takes 44 bytes, the call of a kernel is two of them, a thread's part of it 68; each
  /// name is kept once.
  explicit ETDumpGen(Span<uint8_t> memory);
  ETDumpGen(const ETDumpGen&) = delete;
  ETDumpGen& operator=(const ETDumpGen&) = delete;

  /// The dump so far, at the end of the memory; empty when it cannot even hold one without events.
  /// Valid until the next event: recording may go on.
  Span<const uint8_t> get_etdump_data();
  /// Forgets everything.
  void reset();

  /// Which results are recorded beside times.
  enum class Values : uint8_t {
    None,
    /// What methods return.
    Outputs,
    /// Also what kernels return and what delegates take, return and tell.
    All,
  };
  /// Copies results to `debug_buffer`, each to a multiple of 64 bytes from its beginning.
  void set_debug_buffer(Span<uint8_t> debug_buffer, Values values = Values::All);
  /// Records of each tensor only its sizes, min, max and mean of its finite elements, how many are
  /// NaN and infinite, and a hash of its bytes: at most 200 bytes a result of up to eight
  /// dimensions, and no debug buffer. In place of set_debug_buffer().
  void set_statistics(Values values = Values::All);
  /// Instructions from `first` to `last`.
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  /// Of All, only the results of these instructions and what methods return; of all without any.
  /// `ranges` must outlive the recording.
  void select(Span<const Range> ranges) { ranges_ = ranges; }
  /// Also records what threads did of loops that several ran; not beside values. Readers that know
  /// nothing of it see the same events, but ExecuTorch's Inspector groups executions by their
  /// number.
  void set_threads(bool are_recorded) { has_threads_ = are_recorded; }
  /// The bytes of the debug buffer in use, from its beginning.
  size_t debug_bytes() const { return debug_used_; }

  /// What did not fit, and the sizes of memory and debug buffer into which all would have.
  uint64_t missing_events() const { return missing_events_; }
  uint64_t missing_values() const { return missing_values_; }
  uint64_t required_bytes() const { return memory_.size() + missing_bytes_; }
  uint64_t required_debug_bytes() const { return debug_used_ + missing_debug_bytes_; }

  void load(const char* method, Error error, uint64_t start, uint64_t end) override;
  void begin_execution(const char* method) override;
  void event(const TraceEvent& event) override;
  void delegate_event(const DelegateEvent& event) override;
  void thread_event(const ThreadEvent& event) override;
  void allocation(uint32_t instruction, uint64_t size) override;
  void end_execution(uint64_t start, uint64_t end) override;
  void output(uint32_t index, const etx_value& value) override;

 private:
  /// Where something lies: the bytes from there to the end of the memory. 0 is nothing.
  using Ref = uint32_t;
  struct Name {
    const char* key;
    const char* overload;
    Ref ref;
  };
  /// A load or an execution.
  struct Run {
    Ref name;
    Ref method;
    Ref failure;
    Ref events;
    uint64_t missing_events;
    uint64_t missing_bytes;
    /// The most that an instruction took.
    uint64_t scratch;
    uint32_t scratch_instruction;
  };
  /// Where a value was seen.
  struct Place {
    uint64_t chain;
    uint32_t instruction;
    const char* delegate;
    int32_t id;
    bool is_output;
  };
  struct Text {
    const char* parts[4];
  };
  /// What is done with values, which programs that record none do not link.
  using Keep = void (*)(ETDumpGen& dump, const Place& place, const etx_value& value);
  using KeepResults = void (*)(ETDumpGen& dump, const TraceEvent& event);

  uint8_t* at(Ref ref) const { return memory_.data() + memory_.size() - ref; }
  bool has_room(uint64_t size) const;
  bool take(uint64_t size);
  void lose(uint64_t size);
  Ref place(size_t size, size_t alignment);
  Ref place_table(uint16_t vtable, size_t size);
  void point(Ref table, size_t member, Ref target);
  Ref place_list(const uint8_t* refs, size_t count);
  Ref place_numbers(const int64_t* numbers, size_t count);
  Ref place_sizes(const int32_t* sizes, size_t count);
  Ref find_text(const Text& text, size_t size, Ref ref) const;
  Ref place_text(const Text& text);
  Ref cached(const char* name, const char* overload);
  Ref place_name(const char* name, const char* overload);
  Ref place_note(const char* first, uint64_t number, const char* second, uint64_t other);

  void begin_run(const char* name, const char* method);
  void end_run();
  Ref place_run();
  void append(Ref event);
  void profile(Ref name, uint32_t chain, uint32_t instruction, uint64_t start, uint64_t end);
  bool is_selected(uint32_t instruction) const;
  void set_keep(Keep keep, Values values);
  static void keep_results(ETDumpGen& dump, const TraceEvent& event);
  static void copy(ETDumpGen& dump, const Place& place, const etx_value& value);
  static void summarize(ETDumpGen& dump, const Place& place, const etx_value& value);
  void add_statistics(const Place& place, const etx_tensor& tensor);
  void add_value(const Place& place, Ref entry);
  Ref place_described(const etx_tensor& tensor, Ref strides, uint64_t offset);
  Ref place_value(const etx_value& value, bool is_output);
  Ref place_tensors(const etx_value& list);
  Ref place_tensor(const etx_tensor& tensor);

  static constexpr size_t kNames = 64;
  static constexpr size_t kTexts = 64;

  Span<uint8_t> memory_;
  Span<uint8_t> debug_;
  /// Of single values, null for none, and of the results of instructions.
  Keep keep_ = nullptr;
  KeepResults keep_results_ = nullptr;
  Span<const Range> ranges_;
  size_t debug_used_;
  bool has_threads_ = false;
  bool has_run_;
  bool is_open_;
  bool is_closing_;
  /// Bytes from the end; references from the beginning: finished runs, then events of the open one.
  Ref used_;
  uint32_t runs_;
  uint32_t events_;
  /// The texts by their hash: the last of each, which leads to those before.
  Ref texts_[kTexts];
  Run run_;
  uint64_t scratch_;
  uint32_t scratch_instruction_;
  uint64_t missing_events_;
  uint64_t missing_values_;
  uint64_t missing_bytes_;
  uint64_t missing_debug_bytes_;
  Name names_[kNames];
};

}  // namespace etx

#endif  // ETX_ETDUMP_H_
