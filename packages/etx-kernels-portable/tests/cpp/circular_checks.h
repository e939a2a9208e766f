// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_CIRCULAR_CHECKS_H_
#define ETX_TESTS_CIRCULAR_CHECKS_H_

/// Sines and cosines, and whole numbers, next to those of libm.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "check.h"

namespace {

/// Numbers of all sizes, then those that are left as they are.
template <typename T, typename Exact>
void check_circular(Check& t, bool (*loop)(const T*, T*, size_t, double), const Exact& within) {
  constexpr T kLeft[] = {T(1048577), T(-3e30), std::numeric_limits<T>::infinity(), T(kNan)};
  for (const size_t n : kSizes) {
    std::vector<T> x, y(n);
    for (size_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(std::ldexp(t.draw(), static_cast<int>(i * 11 % 48) - 30)));
    }
    if (n > 2) x[0] = T(0), x[1] = T(-0.0), x[2] = T(1048576);
    t.equal(loop(x.data(), y.data(), n, 0), false);
    for (size_t i = 0; i < n; ++i) within(y[i], std::sin(static_cast<double>(x[i])), x[i]);
    t.equal(loop(x.data(), y.data(), n, 0.5), false);
    for (size_t i = 0; i < n; ++i) within(y[i], std::cos(static_cast<double>(x[i])), x[i]);
    for (size_t i = 0; i < n; ++i) {
      for (const T left : kLeft) {
        std::vector<T> in_place = x;
        in_place[i] = left;
        t.equal(loop(in_place.data(), in_place.data(), n, 0.5), true);
        t.equal(static_cast<double>(in_place[i]), static_cast<double>(left), 0);
      }
    }
  }
}
void check_circular_float(Check& t) {
  check_circular<float>(t, t.isa.circular_float, [&](float y, double expected, float x) {
    if (std::fabs(y - expected) <= 6.05e-8 * std::fabs(expected) &&
        std::signbit(y) == std::signbit(expected)) {
      return;
    }
    std::printf("%s, %s of %.9g: %.9g, not %.9g\n", t.isa.name, t.member, x, y, expected);
    std::exit(1);
  });
}
void check_circular_double(Check& t) {
  check_circular<double>(t, t.isa.circular_double, [&](double y, double expected, double x) {
    if (std::fabs(y - expected) <= 4e-16 * std::fabs(expected) &&
        std::signbit(y) == std::signbit(expected)) {
      return;
    }
    std::printf("%s, %s of %.17g: %.17g, not %.17g\n", t.isa.name, t.member, x, y, expected);
    std::exit(1);
  });
}

template <typename T>
void check_rounding(Check& t, void (*loop)(const T*, T*, size_t, etx::portable::Rounding)) {
  using etx::portable::Rounding;
  using Limits = std::numeric_limits<T>;
  const T half = T(0.5), most = std::ldexp(T(1), Limits::digits - 1);
  std::vector<T> x = {T(0),
                      T(0.25),
                      half,
                      T(0.75),
                      T(1),
                      T(1.5),
                      T(2.5),
                      T(3.75),
                      most,
                      most - half,
                      most / 2 - half,
                      most + 1,
                      4 * most,
                      Limits::max(),
                      Limits::min(),
                      Limits::denorm_min(),
                      Limits::infinity(),
                      T(kNan)};
  for (const T v : std::vector<T>(x)) x.push_back(-v), x.push_back(std::nextafter(v, T(9)));
  const auto check = [&](Rounding to, T (*expected)(T)) {
    for (size_t n = 0; n <= x.size(); ++n) {
      std::vector<T> y = x;
      loop(y.data(), y.data(), n, to);
      for (size_t i = 0; i < x.size(); ++i) {
        const T want = i < n ? expected(x[i]) : x[i];
        const bool same = y[i] == want ? std::signbit(y[i]) == std::signbit(want)
                                       : std::isnan(y[i]) && std::isnan(want);
        if (same) continue;
        std::printf("%s, %s of %.17g: %.17g, not %.17g\n", t.isa.name, t.member,
                    static_cast<double>(x[i]), static_cast<double>(y[i]),
                    static_cast<double>(want));
        std::exit(1);
      }
    }
  };
  check(Rounding::Nearest, [](T v) { return std::nearbyint(v); });
  check(Rounding::Down, [](T v) { return std::floor(v); });
  check(Rounding::Up, [](T v) { return std::ceil(v); });
  check(Rounding::ToZero, [](T v) { return std::trunc(v); });
}
void check_round_float(Check& t) { check_rounding<float>(t, t.isa.round_float); }
void check_round_double(Check& t) { check_rounding<double>(t, t.isa.round_double); }

}  // namespace

#endif  // ETX_TESTS_CIRCULAR_CHECKS_H_
