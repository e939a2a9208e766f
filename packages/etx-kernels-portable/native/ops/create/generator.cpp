// SPDX-License-Identifier: BSD-3-Clause
#include "ops/create/generator.h"

#include <atomic>
#include <cmath>

namespace etx::portable {
namespace {

std::atomic<uint64_t> numbers_used{0};

}  // namespace

uint64_t take_numbers(uint64_t count) { return numbers_used.fetch_add(count); }

uint64_t random_bits(uint64_t k) {
  uint64_t z = (k + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float uniform(uint64_t k, int digits) {
  return std::ldexp(static_cast<float>(random_bits(k) >> (64 - digits)), -digits);
}

}  // namespace etx::portable
