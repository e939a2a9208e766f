// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_GENERATOR_H_
#define ETX_PORTABLE_GENERATOR_H_

#include <cstdint>

namespace etx::portable {

/// Takes `count` numbers from the generator of the process; returns the first of them. A process
/// that runs the same calls in the same order gets the same numbers.
uint64_t take_numbers(uint64_t count);

/// Number k as random bits: the k-th output of SplitMix64 with seed 0.
uint64_t random_bits(uint64_t k);

/// In [0, 1), a multiple of 2^-digits: a dtype with that precision holds all of these.
float uniform(uint64_t k, int digits);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_GENERATOR_H_
