// SPDX-License-Identifier: BSD-3-Clause
// enlarged <seed> <rounds> <last> <file>...: runs each program as often with sizes near 2^31 and
// 2^33 and numbers that are critical for them, which follow from only the seed and the program.
// What runs is in the file `last`.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "run.h"

namespace {

constexpr unsigned kMostSeconds = 60;

const char* current = "";

[[noreturn]] void out_of_time(int /*signal*/) {
  const char kText[] = " ran for more than 60 seconds\n";
  const bool is_told = write(STDERR_FILENO, current, std::strlen(current)) >= 0 &&
                       write(STDERR_FILENO, kText, sizeof(kText) - 1) >= 0;
  _exit(is_told ? 4 : 5);
}

/// FNV-1a.
uint32_t hash(const etx::fuzz::Bytes& bytes, uint32_t seed) {
  uint32_t state = 2166136261u ^ seed;
  for (const uint8_t byte : bytes) state = (state ^ byte) * 16777619u;
  return state;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const auto seed = static_cast<uint32_t>(std::atoi(arguments[1]));
  const int rounds = std::atoi(arguments[2]);
  std::signal(SIGALRM, out_of_time);
  etx::fuzz::Counts counts;
  for (int i = 4; i < count; ++i) {
    current = arguments[i];
    std::ifstream stream(arguments[i], std::ios::binary);
    const etx::fuzz::Bytes file{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
    etx::fuzz::Random random(hash(file, seed));
    for (int round = 0; round < rounds; ++round) {
      etx::fuzz::Bytes copy = file;
      if (!etx::fuzz::enlarge_program(copy, random)) return 3;
      std::ofstream(arguments[3], std::ios::binary)
          .write(reinterpret_cast<const char*>(copy.data()),
                 static_cast<std::streamsize>(copy.size()));
      alarm(kMostSeconds);
      etx::fuzz::run_program(copy.data(), copy.size(), true, &counts);
      alarm(0);
    }
  }
  std::printf("methods %zu right %zu refused %zu left %zu\n", counts.methods, counts.ran,
              counts.refused, counts.left);
  return 0;
}
