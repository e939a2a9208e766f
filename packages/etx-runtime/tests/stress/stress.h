// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_STRESS_STRESS_H_
#define ETX_TESTS_STRESS_STRESS_H_

#include <etx/hosted/module.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "check.h"

namespace stress {

/// An input of a method and what it returns for it.
struct Sample {
  std::vector<int32_t> sizes;
  std::vector<float> input;
  std::vector<float> output;
};

struct Case {
  std::string method;
  std::vector<Sample> samples;
};

/// What all threads share.
struct Stage {
  std::string folder;
  std::vector<std::string> plugins;
  std::shared_ptr<etx::LoadedProgram> program;
  std::vector<Case> cases;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> loads{0};
  std::atomic<uint64_t> executions{0};
  std::atomic<uint64_t> cancelled{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> helped{0};
  std::atomic<uint64_t> heard{0};
};

std::shared_ptr<etx::LoadedProgram> open(const Stage& stage, bool use_mmap);
std::unique_ptr<etx::LoadedMethod> load(Stage& stage,
                                        const std::shared_ptr<etx::LoadedProgram>& program,
                                        const std::string& name);
/// Executes once and compares.
void check(Stage& stage, etx::LoadedMethod& method, const Sample& sample);

/// The work of a thread with methods of its own: all cases, beginning with the one of `number`.
void execute_cases(Stage& stage, size_t number);
void count_up(Stage& stage);
void run_into_cancel(Stage& stage);

/// What other threads may do meanwhile; each function is one thread's work.
using Work = void (*)(Stage& stage);
extern const std::vector<Work> kDisturbances;

/// What a sanitizer is to report: a `kernel` whose body races with itself on the pool's threads, or
/// a `method` that two threads execute.
void plant(Stage& stage, const std::string& what);

}  // namespace stress

#endif  // ETX_TESTS_STRESS_STRESS_H_
