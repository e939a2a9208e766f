// SPDX-License-Identifier: BSD-3-Clause
#include <etx/etdump.h>

#include <cstring>
#include <new>

#include "etdump_tables.h"

// A flatbuffer's offsets lead forward, so it grows down from the end of the memory; the references
// that a list will hold are kept at the beginning until it is complete.

namespace etx {
namespace {

using dump::length_of;

/// The namespace of what the runtime does itself.
constexpr char kOwn[] = "executorch_prim::";
/// What closes a run, with its notes; what closes the dump besides: the root and the header.
constexpr size_t kRunSize = 320;
constexpr size_t kReserve = kRunSize + 48;
/// Of a name that did not fit.
constexpr uint32_t kLost = UINT32_MAX;
/// Of what has none.
constexpr uint32_t kNoEvent = UINT32_MAX - 1;
constexpr size_t kMostMemory = size_t{1} << 30;
/// An event with its place in the list.
constexpr size_t kEventSize = sizeof(dump::Profile) + sizeof(uint32_t);

/// The operator without its namespace; null for the runtime's own, which have no event of a kernel.
const char* kernel_name(const char* name) {
  size_t same = 0;
  while (kOwn[same] != '\0' && name[same] == kOwn[same]) ++same;
  if (kOwn[same] == '\0') return nullptr;
  for (const char* c = name; *c != '\0'; ++c) {
    if (c[0] == ':' && c[1] == ':') return c + 2;
  }
  return name;
}

/// The same however the text is cut into parts.
struct Digest {
  size_t size = 0;
  uint32_t hash = 0;
  void add(const char* part) {
    const size_t length = length_of(part);
    for (size_t i = 0; i < length; ++i) hash = hash * 33 + static_cast<uint8_t>(part[i]);
    size += length;
  }
};

size_t hash(const void* key, const void* other) {
  const auto bits = reinterpret_cast<uintptr_t>(key) + 31 * reinterpret_cast<uintptr_t>(other);
  return (bits >> 3) ^ (bits >> 9);
}

// A division of 64 bits is a library's function on a microcontroller, one of 32 bits is not.
uint32_t divide_by_ten(uint64_t& number) {
  uint64_t quotient = 0;
  uint32_t rest = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    const uint32_t part = rest << 16 | static_cast<uint32_t>(number >> shift & 0xFFFF);
    quotient = quotient << 16 | part / 10;
    rest = part % 10;
  }
  number = quotient;
  return rest;
}

char* append_number(char* place, uint64_t number) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + divide_by_ten(number));
  } while (number != 0);
  while (count != 0) *place++ = digits[--count];
  *place = '\0';
  return place;
}

char* append_text(char* place, const char* text) {
  while (*text != '\0') *place++ = *text++;
  return place;
}

}  // namespace

ETDumpGen::ETDumpGen(Span<uint8_t> memory) {
  const size_t skipped = (8 - reinterpret_cast<uintptr_t>(memory.data()) % 8) % 8;
  if (memory.size() > skipped) {
    const size_t size = (memory.size() - skipped) / 8 * 8;
    memory_ = {memory.data() + skipped, size < kMostMemory ? size : kMostMemory};
  }
  reset();
}

void ETDumpGen::reset() {
  used_ = runs_ = events_ = 0;
  for (Ref& last : texts_) last = 0;
  missing_events_ = missing_values_ = missing_bytes_ = missing_debug_bytes_ = 0;
  debug_used_ = 0;
  has_run_ = is_open_ = is_closing_ = false;
  run_ = {};
  if (memory_.size() < sizeof(dump::kVtables) + kReserve) return;
  std::memcpy(at(place(sizeof(dump::kVtables), 8)), dump::kVtables, sizeof(dump::kVtables));
}

/// Whether `size` bytes more, references among them, leave room for what closes the dump.
bool ETDumpGen::has_room(uint64_t size) const {
  const uint64_t lists = sizeof(Ref) * (2 * uint64_t{runs_} + events_);
  return used_ != 0 && used_ + lists + kReserve + size <= memory_.size();
}

/// Counts an event of `size` bytes as missing when there is no room for it.
bool ETDumpGen::take(uint64_t size) {
  if (is_open_ && has_room(size)) return true;
  lose(size);
  return false;
}

void ETDumpGen::lose(uint64_t size) {
  ++missing_events_;
  missing_bytes_ += size;
  ++run_.missing_events;
  run_.missing_bytes += size;
}

ETDumpGen::Ref ETDumpGen::place(size_t size, size_t alignment) {
  const size_t end = (used_ + size + alignment - 1) / alignment * alignment;
  const size_t added = end - used_;
  used_ = static_cast<Ref>(end);
  std::memset(at(used_), 0, added);
  return used_;
}

ETDumpGen::Ref ETDumpGen::place_table(uint16_t vtable, size_t size) {
  const Ref ref = place(size, 8);
  const int32_t distance = static_cast<int32_t>(vtable) - static_cast<int32_t>(ref);
  std::memcpy(at(ref), &distance, sizeof(distance));
  return ref;
}

void ETDumpGen::point(Ref table, size_t member, Ref target) {
  const Ref distance = table - static_cast<Ref>(member) - target;
  std::memcpy(at(table) + member, &distance, sizeof(distance));
}

/// The list may overlap `refs` from above: the last is written first.
ETDumpGen::Ref ETDumpGen::place_list(const uint8_t* refs, size_t count) {
  used_ += static_cast<Ref>(sizeof(Ref) * count);
  const Ref end = used_;
  for (size_t i = count; i-- > 0;) {
    Ref target;
    std::memcpy(&target, refs + sizeof(Ref) * i, sizeof(target));
    point(end, sizeof(Ref) * i, target);
  }
  const Ref list = place(sizeof(uint32_t), 4);
  const auto size = static_cast<uint32_t>(count);
  std::memcpy(at(list), &size, sizeof(size));
  return list;
}

/// In the list that begins at `ref`.
ETDumpGen::Ref ETDumpGen::find_text(const Text& text, size_t size, Ref ref) const {
  while (ref != 0) {
    uint32_t head[2];
    std::memcpy(head, at(ref), sizeof(head));
    const uint8_t* bytes = at(ref) + sizeof(head);
    bool is_same = head[1] == size;
    for (const char* part : text.parts) {
      const size_t length = length_of(part);
      is_same = is_same && (length == 0 || std::memcmp(bytes, part, length) == 0);
      bytes += length;
    }
    if (is_same) return ref - static_cast<Ref>(sizeof(Ref));
    ref = head[0];
  }
  return 0;
}

/// The text, which is kept once; 0 without room, and then it counts as missing.
ETDumpGen::Ref ETDumpGen::place_text(const Text& text) {
  Digest digest;
  for (const char* part : text.parts) digest.add(part);
  const size_t size = digest.size;
  Ref& last = texts_[digest.hash % kTexts];
  const Ref known = find_text(text, size, last);
  if (known != 0) return known;
  const size_t needed = 2 * sizeof(uint32_t) + size + 1;
  if (!is_closing_ && (!is_open_ || !has_room(needed + 3))) {
    run_.missing_bytes += needed;
    missing_bytes_ += needed;
    return 0;
  }
  const Ref ref = place(needed, 4);
  const uint32_t head[2] = {last, static_cast<uint32_t>(size)};
  uint8_t* bytes = at(ref);
  std::memcpy(bytes, head, sizeof(head));
  bytes += sizeof(head);
  for (const char* part : text.parts) {
    const size_t length = length_of(part);
    if (length != 0) std::memcpy(bytes, part, length);
    bytes += length;
  }
  last = ref;
  return ref - static_cast<Ref>(sizeof(Ref));
}

/// The name of a kernel's event, or without an overload the text itself; an address stands for its
/// text until the next run. kNoEvent of the runtime's own kernels, 0 of what did not fit.
ETDumpGen::Ref ETDumpGen::cached(const char* name, const char* overload) {
  Name& entry = names_[hash(name, overload) % kNames];
  if (entry.ref == 0 || entry.key != name || entry.overload != overload) {
    entry = {name, overload, place_name(name, overload)};
  }
  return entry.ref == kLost ? 0 : entry.ref;
}

ETDumpGen::Ref ETDumpGen::place_name(const char* name, const char* overload) {
  const char* const kernel = overload == nullptr ? nullptr : kernel_name(name);
  if (overload != nullptr && kernel == nullptr) return kNoEvent;
  const Ref ref =
      overload == nullptr
          ? place_text({name})
          : place_text({"native_call_", kernel, *overload == '\0' ? nullptr : ".", overload});
  return ref == 0 ? kLost : ref;
}

/// A text with two numbers.
ETDumpGen::Ref ETDumpGen::place_note(const char* first, uint64_t number, const char* second,
                                     uint64_t other) {
  char note[96];
  append_number(append_text(append_number(append_text(note, first), number), second), other);
  return place_text({note});
}

void ETDumpGen::begin_run(const char* name, const char* method) {
  end_run();
  const uint64_t size = kRunSize + 32 + length_of(name) + length_of(method);
  if (!has_room(size)) {
    run_.missing_bytes += size;
    missing_bytes_ += size;
    return;
  }
  if (has_run_) {
    const Ref run = place_run();
    std::memcpy(memory_.data() + sizeof(Ref) * runs_++, &run, sizeof(run));
  }
  for (Name& entry : names_) entry = {};
  run_ = {};
  scratch_ = 0;
  has_run_ = is_open_ = true;
  run_.name = place_text({name});
  if (method != nullptr) run_.method = place_text({"etx method=", method});
}

void ETDumpGen::end_run() {
  if (!is_open_) return;
  const uint8_t* list = memory_.data() + sizeof(Ref) * runs_;
  run_.events = place_list(list, events_);
  events_ = 0;
  is_open_ = false;
}

ETDumpGen::Ref ETDumpGen::place_run() {
  is_closing_ = true;
  Ref notes[4];
  size_t count = 0;
  const auto add = [&](Ref note) {
    if (note != 0) notes[count++] = note;
  };
  add(run_.method);
  if (run_.scratch != 0) {
    add(place_note("etx scratch bytes=", run_.scratch, " instruction=", run_.scratch_instruction));
  }
  add(run_.failure);
  if (run_.missing_bytes != 0) {
    add(place_note("etx missing events=", run_.missing_events, " bytes=", run_.missing_bytes));
  }
  is_closing_ = false;
  for (size_t i = 0; i < count; ++i) {
    const Ref allocator = place_table(dump::kOne, 8);
    point(allocator, 4, notes[i]);
    notes[i] = allocator;
  }
  const Ref allocators = place_list(reinterpret_cast<const uint8_t*>(notes), count);
  const Ref run = place_table(dump::kRun, 16);
  point(run, 4, run_.name);
  point(run, 8, allocators);
  point(run, 12, run_.events);
  return run;
}

Span<const uint8_t> ETDumpGen::get_etdump_data() {
  if (used_ == 0) return {};
  end_run();
  const Ref used = used_;
  Ref runs = runs_;
  if (has_run_) {
    const Ref run = place_run();
    std::memcpy(memory_.data() + sizeof(Ref) * runs++, &run, sizeof(run));
  }
  const Ref list = place_list(memory_.data(), runs);
  const Ref root = place_table(dump::kDump, 12);
  point(root, 8, list);
  const Ref begin = place(12, 8);
  const uint32_t size = begin - 4;
  std::memcpy(at(begin), &size, sizeof(size));
  point(begin, 4, root);
  std::memcpy(at(begin) + 8, "ED00", 4);
  used_ = used;
  for (Ref& last : texts_) {
    while (last > used_) std::memcpy(&last, at(last), sizeof(last));
  }
  return {at(begin), begin};
}

void ETDumpGen::append(Ref event) {
  std::memcpy(memory_.data() + sizeof(Ref) * (runs_ + events_++), &event, sizeof(event));
}

void ETDumpGen::profile(Ref name, uint32_t chain, uint32_t instruction, uint64_t start,
                        uint64_t end) {
  if (name == 0) return lose(kEventSize);
  if (!take(kEventSize)) return;
  const Ref ref = (used_ + static_cast<Ref>(sizeof(dump::Profile)) + 7) / 8 * 8;
  const auto place = static_cast<int32_t>(ref);
  used_ = ref;
  new (at(ref)) dump::Profile{dump::kProfileEvent - place,
                              4,
                              dump::kProfile - (place - 8),
                              ref - 12 - name,
                              start,
                              end,
                              instruction,
                              chain};
  append(ref);
}

void ETDumpGen::load(const char* method, Error error, uint64_t start, uint64_t end) {
  begin_run("Default", method);
  profile(place_text({"Method::init"}), UINT32_MAX, 0, start, end);
  profile(place_text({"Program::load_method"}), UINT32_MAX, 0, start, end);
  if (error != Error::Ok) {
    run_.failure = place_note("etx failed error=", static_cast<uint64_t>(error), " at load ", 0);
  }
  end_run();
}

void ETDumpGen::begin_execution(const char* method) { begin_run("Execute", method); }

void ETDumpGen::event(const TraceEvent& event) {
  static constexpr char kCalls[][14] = {"OPERATOR_CALL", "DELEGATE_CALL", "MOVE_CALL", "JF_CALL",
                                        "FREE_CALL"};
  if (!is_open_) begin_run("Execute", nullptr);
  if (keep_results_ != nullptr && event.error == Error::Ok) keep_results_(*this, event);
  if (event.kind == TraceEvent::Kind::Kernel) {
    const Ref kernel = cached(event.name, event.overload == nullptr ? "" : event.overload);
    if (kernel != kNoEvent) {
      profile(kernel, event.chain, event.instruction, event.start, event.end);
    }
  }
  const Ref name = cached(kCalls[static_cast<size_t>(event.kind)], nullptr);
  profile(name, event.chain, event.instruction, event.start, event.end);
  if (event.error != Error::Ok && event.error != Error::Cancelled) {
    run_.failure = place_note("etx failed error=", static_cast<uint64_t>(event.error),
                              " instruction=", event.instruction);
  }
}

void ETDumpGen::delegate_event(const DelegateEvent& told) {
  const etx_delegate_event& event = told.event;
  if (event.value != nullptr && keep_results_ != nullptr) {
    keep_(*this, {told.chain, told.instruction, event.name, event.id, false}, *event.value);
  }
  if (event.start == 0 && event.end == 0) return;
  const size_t metadata = event.metadata == nullptr ? 0 : event.metadata_size;
  const Ref name = event.name == nullptr ? 0 : place_text({event.name});
  if (event.name != nullptr && name == 0) return lose(kEventSize + 8 + metadata);
  if (!take(kEventSize + 8 + metadata)) return;
  Ref bytes = dump::kEmpty;
  if (metadata != 0) {
    bytes = place(sizeof(uint32_t) + metadata, 4);
    const auto size = static_cast<uint32_t>(metadata);
    std::memcpy(at(bytes), &size, sizeof(size));
    std::memcpy(at(bytes) + sizeof(size), event.metadata, metadata);
  }
  const Ref ref = place(sizeof(dump::Profile), 8);
  const auto place = static_cast<int32_t>(ref);
  const uint16_t vtable = event.name == nullptr ? dump::kDelegateNumbered : dump::kDelegateNamed;
  const dump::Profile record = {
      dump::kProfileEvent - place,
      4,
      vtable - (place - 8),
      event.name == nullptr ? static_cast<uint32_t>(event.id) : ref - 12 - name,
      event.start,
      event.end,
      told.instruction,
      ref - 36 - bytes};
  std::memcpy(at(ref), &record, sizeof(record));
  append(ref);
}

/// A debug event whose value is an empty table, which other readers take for nothing seen.
void ETDumpGen::thread_event(const ThreadEvent& event) {
  constexpr size_t kSize = sizeof(dump::Thread) + 8;
  if (!has_threads_ || keep_ != nullptr) return;
  if (!take(kSize + sizeof(Ref))) return;
  const Ref nothing = place_table(dump::kNothing, 4);
  const Ref ref = place(sizeof(dump::Thread), 8);
  const auto place = static_cast<int32_t>(ref);
  new (at(ref)) dump::Thread{dump::kDebugEvent - place,
                             4,
                             dump::kThread - (place - 8),
                             event.instruction,
                             event.chain,
                             event.start,
                             event.end,
                             event.items,
                             event.thread,
                             ref - 52 - nothing};
  append(ref);
}

void ETDumpGen::allocation(uint32_t instruction, uint64_t size) {
  if (!is_open_) return;
  if (scratch_instruction_ != instruction) scratch_ = 0;
  scratch_instruction_ = instruction;
  scratch_ += size;
  if (scratch_ <= run_.scratch) return;
  run_.scratch = scratch_;
  run_.scratch_instruction = instruction;
}

void ETDumpGen::end_execution(uint64_t start, uint64_t end) {
  profile(place_text({"Method::execute"}), UINT32_MAX, 0, start, end);
}

void ETDumpGen::output(uint32_t, const etx_value& output) {
  if (keep_ != nullptr) keep_(*this, {UINT64_MAX, 0, nullptr, -1, true}, output);
}

}  // namespace etx
