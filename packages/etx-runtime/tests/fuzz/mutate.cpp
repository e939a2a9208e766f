// SPDX-License-Identifier: BSD-3-Clause
#include "mutate.h"

#include <cstring>

namespace etx::fuzz {

int64_t Random::number() {
  static constexpr int64_t kBoundaries[] = {
      -1,        INT8_MAX,         UINT8_MAX,           INT16_MAX, UINT16_MAX, INT32_MIN,
      INT32_MAX, int64_t{1} << 31, int64_t{UINT32_MAX}, INT64_MIN, INT64_MAX,  int64_t{1} << 40};
  if (one_in(3)) return pick(kBoundaries);
  if (one_in(8)) return (int64_t{1} << below(63)) + static_cast<int64_t>(below(3)) - 1;
  if (one_in(8)) return static_cast<int64_t>(uint64_t{engine_()} << 33 ^ engine_());
  return static_cast<int64_t>(below(9)) - 1;
}

void mutate_bytes(Bytes& file, Random& random) {
  if (file.empty()) file.resize(64);
  for (size_t count = 1 + random.below(4); count > 0; --count) {
    file[random.below(file.size())] = static_cast<uint8_t>(random.number());
  }
  if (random.one_in(16)) file.resize(random.below(file.size() + 64));
}

}  // namespace etx::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  etx::fuzz::Random random(seed);
  etx::fuzz::Bytes file(data, data + size);
  for (size_t count = 1 + random.below(3); count > 0; --count) {
    const size_t kind = random.below(10);
    const bool done = kind < 5   ? etx::fuzz::mutate_program(file, random)
                      : kind < 9 ? etx::fuzz::mutate_field(file, random)
                                 : false;
    if (!done) etx::fuzz::mutate_bytes(file, random);
  }
  if (file.size() > max_size) file.resize(max_size);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
