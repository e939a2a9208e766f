// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_FUZZ_RUN_H_
#define ETX_TESTS_FUZZ_RUN_H_

#include <cstddef>
#include <cstdint>

#include <etx/abi.h>
#include <etx/span.h>

namespace etx::fuzz {

/// Kernels and backends that execute: those of ETX_FUZZ_KERNELS or the test plugin's, and a backend
/// `Probe` that reads all it is given.
Span<const etx_plugin* const> plugins();

/// What became of executions.
struct Counts {
  size_t methods = 0;  ///< Loaded.
  size_t ran = 0;
  size_t refused = 0;
  size_t left = 0;                ///< Touched more reserved memory than they may.
  uint32_t digest = 2166136261u;  ///< FNV-1a of what they returned.
};

/// Loads the program with full verification and all of its methods; with `execute`, runs each
/// twice, the second time at other sizes. Traps when a failure does not say what and where.
void run_program(const uint8_t* data, size_t size, bool execute, Counts* counts = nullptr);

/// Reads all named data of the program, then does what run_program does without `execute`.
void run_named_data(const uint8_t* data, size_t size);

/// Reads all of a `.ptd`; the file that ETX_FUZZ_PROGRAM names then runs with its weights.
void run_ptd(const uint8_t* data, size_t size);

/// A copy of its own, so that a sanitizer sees what is read past its end; aligned to 16.
class Copy {
 public:
  Copy(const uint8_t* data, size_t size);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const uint8_t* data() const { return data_; }

 private:
  uint8_t* data_;
};

}  // namespace etx::fuzz

#endif  // ETX_TESTS_FUZZ_RUN_H_
