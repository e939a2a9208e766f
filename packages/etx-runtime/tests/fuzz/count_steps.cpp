// SPDX-License-Identifier: BSD-3-Clause
// count_steps <file>...: how many basic blocks of the core it takes to verify and load each
// program.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "run.h"

namespace {
size_t steps = 0;
}

extern "C" void __sanitizer_cov_trace_pc() { ++steps; }

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    std::ifstream stream(arguments[i], std::ios::binary);
    const etx::fuzz::Bytes file{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
    steps = 0;
    etx::fuzz::run_program(file.data(), file.size(), false);
    std::printf("%zu\n", steps);
  }
  return 0;
}
