// SPDX-License-Identifier: BSD-3-Clause
// enlarged <seed> <rounds> <last> <file>...: runs each program as often with sizes near 2^31 and
// 2^33 and numbers that are critical for them, which follow from only the seed and the program.
// What runs is in the file `last`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "run.h"

namespace {

constexpr unsigned kMostSeconds = 60;

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
  etx::fuzz::Counts counts;
  for (int i = 4; i < count; ++i) {
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
