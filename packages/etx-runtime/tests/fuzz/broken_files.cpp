// SPDX-License-Identifier: BSD-3-Clause
// broken_files <file>...: each file cut at every 64 bytes, and with every field wrong in turn, as a
// program and as a .ptd. Traps when a failure does not say what and where.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "run.h"

int main(int count, char** arguments) {
  size_t cuts = 0;
  size_t fields = 0;
  const auto run = [](const etx::fuzz::Bytes& file) {
    etx::fuzz::run_named_data(file.data(), file.size());
    etx::fuzz::run_program(file.data(), file.size(), true);
    etx::fuzz::run_ptd(file.data(), file.size());
  };
  for (int i = 1; i < count; ++i) {
    std::ifstream stream(arguments[i], std::ios::binary);
    const etx::fuzz::Bytes file{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
    run(file);
    for (size_t size = 0; size < file.size(); size += 64, ++cuts) {
      run(etx::fuzz::Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    etx::fuzz::corrupt_each_field(file, [&](const etx::fuzz::Bytes& wrong) {
      run(wrong);
      ++fields;
    });
  }
  std::printf("files %d cuts %zu fields %zu\n", count - 1, cuts, fields);
  return 0;
}
