// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_FUZZ_MUTATE_H_
#define ETX_TESTS_FUZZ_MUTATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <vector>

namespace etx::fuzz {

using Bytes = std::vector<uint8_t>;

/// Choices of a mutation, from one seed.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /// A number below `limit`, which must be positive.
  size_t below(size_t limit) { return engine_() % limit; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <typename List>
  auto& pick(List& list) {
    return list[below(std::size(list))];
  }
  /// Small, a boundary of a type, or anything.
  int64_t number();

 private:
  std::minstd_rand engine_;
};

/// Changes a field of a program or `.ptd` where it lies: a number, a length, an offset, or whether
/// it is there. False when the flatbuffer cannot be walked.
bool mutate_field(Bytes& file, Random& random);

/// Calls `use` with a copy of the file for every field and several wrong contents of it: a number
/// at the ends of its type and one more or less, a length, an offset, and the field left out.
void corrupt_each_field(const Bytes& file, const std::function<void(const Bytes&)>& use);

/// Changes the instructions, values, inputs or outputs of a method and writes the program again.
/// False when the file is not a program that can be read.
bool mutate_program(Bytes& file, Random& random);

/// Gives the tensors of a method sizes up to 2^31 - 1 that still fit together, and its numbers
/// values that are critical for them. False when the file is not a program that can be read.
bool enlarge_program(Bytes& file, Random& random);

/// Changes bytes, whatever they mean.
void mutate_bytes(Bytes& file, Random& random);

}  // namespace etx::fuzz

#endif  // ETX_TESTS_FUZZ_MUTATE_H_
