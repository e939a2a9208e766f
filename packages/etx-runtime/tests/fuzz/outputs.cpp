// SPDX-License-Identifier: BSD-3-Clause
// outputs <file>...: runs each program and prints how many ran, and a digest of what they returned.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "run.h"

int main(int count, char** arguments) {
  etx::fuzz::Counts counts;
  for (int i = 1; i < count; ++i) {
    std::ifstream stream(arguments[i], std::ios::binary);
    const etx::fuzz::Bytes file{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
    etx::fuzz::run_program(file.data(), file.size(), true, &counts);
  }
  std::printf("%zu %08x\n", counts.ran, static_cast<unsigned>(counts.digest));
  return 0;
}
