// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_EXAMPLES_RUNNER_H_
#define ETX_EXAMPLES_RUNNER_H_

#include <etx/registry.h>

#include <cstddef>
#include <cstdint>

namespace etx_run {

/// What the runner needs of the machine it runs on.
class Platform {
 public:
  /// `size` bytes aligned to 16, never given back; null when there is not enough memory.
  /// `memory_id` is that of a planned arena, or 0 for the program and all else.
  virtual uint8_t* allocate(size_t size, size_t memory_id) = 0;
  /// What the memory of an arena is called.
  virtual const char* memory_name(size_t memory_id) = 0;
  /// Bytes of a file, or -1 when it cannot be read.
  virtual int64_t file_size(const char* path) = 0;
  virtual bool read(const char* path, uint8_t* to, size_t size) = 0;
  virtual bool write(const char* path, const void* from, size_t size) = 0;
  virtual void print(const char* text) = 0;

 protected:
  ~Platform() = default;
};

/// Runs a method of a program on inputs from files, prints what it did, and writes the outputs.
///
/// `argv` is a command line without the program's name; see `kUsage` in runner.cpp. Uses no heap
/// and no C library but memcpy and its like. Returns the process's exit code: 0, 1 for a failure,
/// 2 for a wrong command line.
int run(int argc, const char* const* argv, Platform& platform, const etx::Registry& registry);

}  // namespace etx_run

#endif  // ETX_EXAMPLES_RUNNER_H_
