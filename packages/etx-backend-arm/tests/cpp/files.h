// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ARM_TESTS_FILES_H_
#define ETX_ARM_TESTS_FILES_H_

#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

using Data = std::vector<uint8_t>;

inline Data read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return Data(std::istreambuf_iterator<char>(file), {});
}

#endif  // ETX_ARM_TESTS_FILES_H_
