// SPDX-License-Identifier: BSD-3-Clause
#include "recorder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <etx/platform.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "convert.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace etx {
namespace python {
namespace {

constexpr size_t kReady = size_t{1} << 21;

constexpr size_t kEvents = 1000;

/// Longer than the hosted clock takes to learn its rate, until when it is read more slowly.
constexpr uint64_t kSettlingNs = 21'000'000;

/// Reads the clock until it is as fast as it becomes: once in a process.
void settle_clock() {
  static const bool settled = [] {
    const uint64_t start = etx_pal_current_ticks();
    while (etx_pal_current_ticks() - start < kSettlingNs) {
    }
    return true;
  }();
  (void)settled;
}

/// Nanoseconds of an event with the clock that it needs, the least of some rounds.
template <typename Tell>
double least_cost(const Tell& tell) {
  constexpr size_t kRounds = 8;
  settle_clock();
  PyRecorder recorder(kRounds * kEvents * 128, 0, 0, false, {}, false);
  uint64_t least = UINT64_MAX;
  for (size_t round = 0; round < kRounds; ++round) {
    recorder.dump().begin_execution("forward");
    const uint64_t start = etx_pal_current_ticks();
    uint64_t now = start;
    for (size_t i = 0; i < kEvents; ++i) now = tell(recorder.dump(), i, now);
    least = std::min(least, etx_pal_current_ticks() - start);
  }
  return static_cast<double>(least) / kEvents;
}

/// Of an instruction.
double recording_cost() {
  return least_cost([](ETDumpGen& dump, size_t, uint64_t start) {
    TraceEvent event{};
    event.name = "aten::add";
    event.overload = "out";
    event.start = start;
    event.end = etx_pal_current_ticks();
    dump.event(event);
    return event.end;
  });
}

/// Of what a delegate tells of its inside: each with a name of its own, the clock read once.
double inner_cost() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kEvents; ++i) names.push_back("Convolution (NHWC) #" + std::to_string(i));
  return least_cost([&](ETDumpGen& dump, size_t i, uint64_t start) {
    etx_delegate_event event{};
    event.name = names[i].c_str();
    event.start = start;
    event.end = etx_pal_current_ticks();
    dump.delegate_event({0, 0, event});
    return event.end;
  });
}

}  // namespace

PyRecorder::PyRecorder(size_t memory, size_t debug_memory, int values, bool statistics,
                       const Ranges& ranges, bool threads)
    : memory_(static_cast<uint8_t*>(std::malloc(memory == 0 ? 1 : memory))),
      debug_(static_cast<uint8_t*>(std::malloc(debug_memory == 0 ? 1 : debug_memory))) {
  if (memory_ == nullptr || debug_ == nullptr) throw std::bad_alloc();
  // The pages that are written first, so that they do not count as time of instructions.
  const size_t ready = std::min(memory, kReady);
  std::memset(memory_.get() + memory - ready, 0, ready);
  std::memset(memory_.get(), 0, std::min(memory, kReady / 8));
  dump_ = std::make_unique<ETDumpGen>(Span<uint8_t>(memory_.get(), memory));
  for (const auto& [first, last] : ranges) ranges_.push_back({first, last});
  dump_->select({ranges_.data(), ranges_.size()});
  dump_->set_threads(threads);
  const auto which = static_cast<ETDumpGen::Values>(values);
  if (statistics) {
    dump_->set_statistics(which);
  } else {
    dump_->set_debug_buffer({debug_.get(), debug_memory}, which);
  }
}

PyRecorder::Use::Use(PyRecorder& recorder) : recorder_(recorder) {
  if (recorder_.is_busy_.exchange(true, std::memory_order_acquire)) {
    raise("ExecutionError", Error::InvalidState,
          "the recorder is in use, in another thread or around this call; take one a thread");
  }
}

nb::bytes PyRecorder::etdump() {
  const Use use(*this);
  const Span<const uint8_t> data = dump_->get_etdump_data();
  if (data.empty()) {
    raise("ExecutionError", Error::OutOfResources,
          "the recorder's memory does not even hold a dump without events: give it 1024 bytes");
  }
  return nb::bytes(data.data(), data.size());
}

nb::bytes PyRecorder::debug_buffer() const { return nb::bytes(debug_.get(), dump_->debug_bytes()); }

nb::object PyRecorder::debug_view(nb::handle owner) const {
  return nb::cast(
      nb::ndarray<nb::memview, const uint8_t>(debug_.get(), {dump_->debug_bytes()}, owner));
}

void PyRecorder::clear() {
  const Use use(*this);
  dump_->reset();
}

void bind_recorder(nb::module_& m) {
  nb::class_<PyRecorder>(m, "Recorder", "What methods do, as an ETDump.")
      .def(nb::init<size_t, size_t, int, bool, const PyRecorder::Ranges&, bool>(), "memory"_a,
           "debug_memory"_a, "values"_a, "statistics"_a, "ranges"_a, "threads"_a)
      .def_static("cost", recording_cost)
      .def_static("inner_cost", inner_cost)
      .def("etdump", &PyRecorder::etdump)
      .def("debug_buffer", &PyRecorder::debug_buffer)
      .def(
          "debug_view",
          [](nb::handle self) { return nb::cast<PyRecorder&>(self).debug_view(self); },
          nb::sig("def debug_view(self) -> memoryview"))
      .def("clear", &PyRecorder::clear)
      .def("missing_events", [](PyRecorder& self) { return self.dump().missing_events(); })
      .def("missing_values", [](PyRecorder& self) { return self.dump().missing_values(); })
      .def("required_bytes", [](PyRecorder& self) { return self.dump().required_bytes(); })
      .def("required_debug_bytes",
           [](PyRecorder& self) { return self.dump().required_debug_bytes(); });
}

}  // namespace python
}  // namespace etx
