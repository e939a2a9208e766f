// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_CHECK_H_
#define ETX_TESTS_CHECK_H_

/// What compares a row of isa.def with plain loops.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "isa/isa.h"

namespace {

using etx::portable::Isa;
using Floats = std::vector<float>;

constexpr size_t kSizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 64, 67, 130};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Check {
  const Isa& isa;
  const char* member;
  uint64_t state = 88172645463325252u;

  void equal(double actual, double expected, double scale = 1) const {
    const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
    const double allowed = 2e-6 * (scale + std::fabs(expected));
    if (same || std::fabs(actual - expected) <= allowed) return;
    std::printf("%s, %s: %.9g, not %.9g\n", isa.name, member, actual, expected);
    std::exit(1);
  }

  float draw() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<float>(static_cast<int64_t>(state >> 32) % 2000 - 1000) / 250.0f;
  }
  Floats draw(size_t n) {
    Floats values(n);
    for (float& v : values) v = draw();
    return values;
  }
  Floats draw(int64_t n) { return draw(static_cast<size_t>(n)); }

  void unary(etx::portable::UnaryLoop loop, double (*expected)(double)) {
    for (const size_t n : kSizes) {
      const Floats x = draw(n);
      Floats y(n);
      loop(x.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) equal(y[i], expected(x[i]));
    }
  }
  void binary(etx::portable::BinaryLoop loop, double (*expected)(double, double)) {
    for (const size_t n : kSizes) {
      const Floats a = draw(n), b = draw(n);
      Floats y(n);
      loop(a.data(), b.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) equal(y[i], expected(a[i], b[i]));
    }
  }
  void scalar(etx::portable::ScalarLoop loop, double (*expected)(double, double)) {
    for (const size_t n : kSizes) {
      const Floats a = draw(n);
      const float b = draw();
      Floats y(n);
      loop(a.data(), b, y.data(), n);
      for (size_t i = 0; i < n; ++i) equal(y[i], expected(a[i], b));
    }
  }
};

}  // namespace

#endif  // ETX_TESTS_CHECK_H_
