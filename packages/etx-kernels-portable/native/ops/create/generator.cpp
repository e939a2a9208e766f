// SPDX-License-Identifier: BSD-3-Clause
#include "ops/create/generator.h"

#include <cmath>

namespace etx::portable {
namespace {

void philox(etx_random draw, uint64_t block, uint32_t* words) {
  uint32_t a = static_cast<uint32_t>(block);
  uint32_t b = static_cast<uint32_t>(block >> 32);
  uint32_t c = static_cast<uint32_t>(draw.draws);
  uint32_t d = static_cast<uint32_t>(draw.draws >> 32);
  uint32_t key0 = static_cast<uint32_t>(draw.seed);
  uint32_t key1 = static_cast<uint32_t>(draw.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53} * a;
    const uint64_t second = uint64_t{0xcd9e8d57} * c;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ key0;
    c = static_cast<uint32_t>(first >> 32) ^ d ^ key1;
    b = static_cast<uint32_t>(second);
    d = static_cast<uint32_t>(first);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  words[0] = a;
  words[1] = b;
  words[2] = c;
  words[3] = d;
}

// Libraries' logarithms and cosines differ in the last bit; these are made of operations that
// IEEE 754 rounds in one way, and are compiled without contraction.

/// The logarithm of x in (0, 1]: of s = (m - 1) / (m + 1), 2 * (s + s^3 / 3 + s^5 / 5 + ...).
double natural_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.7071067811865476) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = sum * (s * s) + 1.0 / n;
  return exponent * 0.6931471805599453 + 2 * s * sum;
}

/// sin(2 pi x) for x in [0, 1): that of the nearest quarter and of an angle of at most pi / 4.
double sine(double x) {
  const int quarter = static_cast<int>(x * 4 + 0.5);
  const double angle = 6.283185307179586 * (x - quarter * 0.25);
  const int odd = quarter % 2;
  double sum = 0;
  for (int n = 18; n >= 2; n -= 2) {
    sum = (1 + sum) * -(angle * angle) / (odd != 0 ? n * (n - 1) : n * (n + 1));
  }
  const double value = odd != 0 ? 1 + sum : angle * (1 + sum);
  return quarter % 4 >= 2 ? -value : value;
}

}  // namespace

uint32_t Numbers::word(uint64_t index) {
  if (index / 4 != block_) {
    block_ = index / 4;
    philox(draw_, block_, words_);
  }
  return words_[index % 4];
}

float Numbers::uniform(uint64_t index, int digits) {
  return std::ldexp(static_cast<float>(word(index) >> (32 - digits)), -digits);
}

double Numbers::uniform(uint64_t index) {
  const uint64_t low = word(2 * index);
  return static_cast<double>((low | uint64_t{word(2 * index + 1)} << 32) >> 11) * 0x1p-53;
}

double Numbers::normal(uint64_t index) {
  const double radius = std::sqrt(-2 * natural_log(1 - uniform(index / 2 * 2)));
  const double turn = uniform(index / 2 * 2 + 1);
  return radius * sine(index % 2 != 0 ? turn : turn < 0.75 ? turn + 0.25 : turn - 0.75);
}

}  // namespace etx::portable
