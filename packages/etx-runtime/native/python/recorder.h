// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_RECORDER_H_
#define ETX_NATIVE_PYTHON_RECORDER_H_

#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <etx/etdump.h>
#include <nanobind/nanobind.h>

namespace etx {
namespace python {

/// An ETDump in memory that the system hands out as it is written.
class PyRecorder {
 public:
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
  PyRecorder(size_t memory, size_t debug_memory, int values, bool statistics, const Ranges& ranges,
             bool threads);

  ETDumpGen& dump() { return *dump_; }
  nanobind::bytes etdump();
  nanobind::bytes debug_buffer() const;
  /// A view without a copy; `owner` is this object in Python.
  nanobind::object debug_view(nanobind::handle owner) const;
  void clear();

  /// Throws Raised when another thread records with it.
  class Use {
   public:
    explicit Use(PyRecorder& recorder);
    ~Use() { recorder_.is_busy_.store(false, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PyRecorder& recorder_;
  };

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  std::unique_ptr<uint8_t, Free> debug_;
  std::vector<ETDumpGen::Range> ranges_;
  std::unique_ptr<ETDumpGen> dump_;
  std::atomic<bool> is_busy_{false};
};

void bind_recorder(nanobind::module_& m);

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_RECORDER_H_
