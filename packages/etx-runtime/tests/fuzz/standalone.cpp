// SPDX-License-Identifier: BSD-3-Clause
// What libFuzzer does, less its search for coverage, for compilers without it: runs every file, and
// with -max_total_time=<seconds> then mutations of them.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed);

namespace {

constexpr size_t kMaxSize = 1 << 16;

std::vector<etx::fuzz::Bytes> read(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) files.emplace_back(path);
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry);
  }
  std::vector<etx::fuzz::Bytes> contents;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return contents;
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = 0;
  uint32_t seed = 1;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    if (std::strncmp(arguments[i], "-max_total_time=", 16) == 0)
      seconds = std::atof(arguments[i] + 16);
    if (std::strncmp(arguments[i], "-seed=", 6) == 0)
      seed = static_cast<uint32_t>(std::atoi(arguments[i] + 6));
    if (arguments[i][0] != '-') paths.emplace_back(arguments[i]);
  }
  const std::vector<etx::fuzz::Bytes> seeds = read(paths);
  size_t runs = 0;
  for (const etx::fuzz::Bytes& file : seeds) {
    LLVMFuzzerTestOneInput(file.data(), file.size());
    ++runs;
  }
  const auto start = std::chrono::steady_clock::now();
  etx::fuzz::Random random(seed);
  while (!seeds.empty() &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
             seconds) {
    etx::fuzz::Bytes file = random.pick(seeds);
    for (size_t turns = 1 + random.below(6); turns > 0; --turns) {
      const size_t size = file.size();
      file.resize(kMaxSize + size);
      file.resize(LLVMFuzzerCustomMutator(file.data(), size, file.size(),
                                          static_cast<unsigned>(random.below(1u << 30))));
      LLVMFuzzerTestOneInput(file.data(), file.size());
      ++runs;
    }
  }
  std::fprintf(stderr, "Done %zu runs\n", runs);
  return 0;
}
