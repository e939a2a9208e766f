// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_WHOLE_VECTOR_CHECKS_H_
#define ETX_TESTS_WHOLE_VECTOR_CHECKS_H_

/// Loops that do the first elements, those that fill vectors, and return how many.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "check.h"
#include "isa/sine_series.h"

namespace {

/// Less than 64 bytes are left.
template <typename T>
void check_done(const Check& t, size_t done, size_t n) {
  constexpr size_t kWidth = 64 / sizeof(T);
  if (done <= n && n - done < kWidth && (done == n || n % kWidth != 0)) return;
  std::printf("%s, %s: %zu done of %zu\n", t.isa.name, t.member, done, n);
  std::exit(1);
}

/// The same number, with the same sign if it is zero.
template <typename T>
void check_same(const Check& t, T actual, T expected, T of) {
  const auto a = static_cast<double>(actual), b = static_cast<double>(expected);
  if (actual == expected ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b)) {
    return;
  }
  std::printf("%s, %s of %.17g: %.17g, not %.17g\n", t.isa.name, t.member, static_cast<double>(of),
              a, b);
  std::exit(1);
}

/// Numbers of all sizes, then those that are left as they are.
template <typename T, typename Loop>
void check_circular(Check& t, const Loop& loop, const double* series, double ulp) {
  constexpr T kLeft[] = {T(1048577), T(-3e30), std::numeric_limits<T>::infinity(), T(kNan)};
  for (const size_t n : kSizes) {
    std::vector<T> x, y(n);
    for (size_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(std::ldexp(t.draw(), static_cast<int>(i * 11 % 48) - 30)));
    }
    if (n > 2) x[0] = T(0), x[1] = T(-0.0), x[2] = T(1048576);
    for (const double ahead : {0.0, 0.5}) {
      bool left = false;
      const size_t done = loop(x.data(), y.data(), n, ahead, series, left);
      check_done<T>(t, done, n);
      t.equal(left, false);
      for (size_t i = 0; i < done; ++i) {
        const auto number = static_cast<double>(x[i]);
        const double expected = ahead == 0 ? std::sin(number) : std::cos(number);
        const bool near = std::fabs(static_cast<double>(y[i]) - expected) <=
                          ulp * std::numeric_limits<T>::epsilon() * std::fabs(expected);
        check_same(t, y[i], near && expected != 0 ? y[i] : static_cast<T>(expected), x[i]);
        t.equal(std::signbit(y[i]), std::signbit(expected), 0);
      }
      for (size_t i = 0; i < done; ++i) {
        for (const T other : kLeft) {
          std::vector<T> in_place = x;
          in_place[i] = other;
          left = false;
          loop(in_place.data(), in_place.data(), n, ahead, series, left);
          t.equal(left, true);
          check_same(t, in_place[i], other, other);
        }
      }
    }
  }
}
void check_circular_float(Check& t) {
  check_circular<float>(t, t.isa.circular_float, etx::portable::kSineOfFloats, 0.51);
}
void check_circular_double(Check& t) {
  check_circular<double>(t, t.isa.circular_double, etx::portable::kSineOfDoubles, 2);
}

template <typename T, typename Loop>
void check_rounding(Check& t, const Loop& loop) {
  using etx::portable::Rounding;
  using Limits = std::numeric_limits<T>;
  const T half = T(0.5), most = std::ldexp(T(1), Limits::digits - 1);
  std::vector<T> x = {T(0),
                      half,
                      T(0.25),
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
      const size_t done = loop(y.data(), y.data(), n, to);
      check_done<T>(t, done, n);
      for (size_t i = 0; i < x.size(); ++i) {
        check_same(t, y[i], i < done ? expected(x[i]) : x[i], x[i]);
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

/// Numbers that repeat, the ends of T's range and, of floats, NaN at times.
template <typename T>
std::vector<T> draw_ends(Check& t, size_t n, bool with_nan) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x;
  for (size_t i = 0; i < n; ++i) {
    const float v = t.draw();
    x.push_back(v > 3 ? Limits::max() : v < -3 ? Limits::lowest() : static_cast<T>(100 * v));
  }
  if (std::is_floating_point_v<T> && with_nan && n > 0) x[n / 3] = Limits::quiet_NaN();
  return x;
}

template <typename T, typename Loop>
void check_clamping(Check& t, const Loop& loop) {
  for (const size_t n : kSizes) {
    const std::vector<T> x = draw_ends<T>(t, n, true);
    for (const T high : {T(50), std::numeric_limits<T>::max()}) {
      std::vector<T> y(n, T(7));
      const size_t done = loop(x.data(), T(-30), high, y.data(), n);
      check_done<T>(t, done, n);
      for (size_t i = 0; i < n; ++i) {
        const T v = x[i] < T(-30) ? T(-30) : x[i] > high ? high : x[i];
        check_same(t, y[i], i < done ? v : T(7), x[i]);
      }
    }
  }
}
void check_clamp_long(Check& t) { check_clamping<int64_t>(t, t.isa.clamp_long); }
void check_clamp_int(Check& t) { check_clamping<int32_t>(t, t.isa.clamp_int); }
void check_clamp_double(Check& t) { check_clamping<double>(t, t.isa.clamp_double); }

template <typename T, typename Bits, typename Loop>
void check_extremes(Check& t, const Loop& loop, Bits flip) {
  constexpr size_t kWidth = 64 / sizeof(T);
  for (const size_t n : kSizes) {
    for (const bool with_nan : {false, true}) {
      for (const bool least : {false, true}) {
        const std::vector<T> x = draw_ends<T>(t, n, with_nan);
        T lanes[kWidth];
        for (T& lane : lanes) lane = T(least ? 11 : -11);
        const size_t done = loop(x.data(), n, least ? flip : 0, lanes);
        check_done<T>(t, done, n);
        T best = T(least ? 11 : -11), found = best;
        const auto take = [&](T v, T& to) {
          if ((least ? v < to : v > to) || v != v) to = v;
        };
        for (size_t i = 0; i < done; ++i) take(x[i], best);
        for (const T lane : lanes) take(lane, found);
        check_same(t, found, best, best);
      }
    }
  }
}
void check_extreme_long(Check& t) { check_extremes<int64_t>(t, t.isa.extreme_long, UINT64_MAX); }
void check_extreme_int(Check& t) { check_extremes<int32_t>(t, t.isa.extreme_int, UINT32_MAX); }
void check_extreme_double(Check& t) {
  check_extremes<double>(t, t.isa.extreme_double, uint64_t{1} << 63);
}

void check_root_double(Check& t) {
  for (const size_t n : kSizes) {
    const std::vector<double> x = draw_ends<double>(t, n, true);
    for (const bool root : {false, true}) {
      for (const bool reciprocal : {false, true}) {
        std::vector<double> y(n);
        const size_t done = t.isa.root_double(x.data(), y.data(), n, root, reciprocal);
        check_done<double>(t, done, n);
        for (size_t i = 0; i < done; ++i) {
          const double v = root ? std::sqrt(x[i]) : x[i];
          check_same(t, y[i], reciprocal ? 1 / v : v, x[i]);
        }
      }
    }
  }
}

/// Products of small numbers, so that a sum is exact in any order and rounding.
void check_polynomial_double(Check& t) {
  constexpr size_t kMost = 8 * 8;
  for (const size_t n : {size_t{0}, kMost / 4, kMost - 1, kMost, 3 * kMost + 5}) {
    for (const size_t terms : {1u, 2u, 5u}) {
      std::vector<double> x(n), y(n + 1, 77), c(terms);
      for (double& number : x) number = std::floor(t.draw());
      for (double& number : c) number = std::floor(t.draw());
      const size_t done = t.isa.polynomial_double(x.data(), y.data(), n, c.data(), terms);
      t.equal(done <= n && n - done < kMost, true);
      for (size_t i = 0; i < done; ++i) {
        double sum = 0;
        for (size_t k = terms; k > 0; --k) sum = sum * x[i] + c[k - 1];
        t.equal(y[i], sum);
      }
      t.equal(y[n], 77);
    }
  }
}

void check_div_double(Check& t) {
  for (const size_t n : kSizes) {
    if (n == 0) continue;
    const auto a = draw_ends<double>(t, n, true), b = draw_ends<double>(t, n, false);
    for (const size_t step : {0u, 1u}) {
      std::vector<double> y(n);
      const size_t done = t.isa.div_double(a.data(), b.data(), step, y.data(), n);
      check_done<double>(t, done, n);
      for (size_t i = 0; i < done; ++i) check_same(t, y[i], a[i] / b[i * step], a[i]);
    }
  }
}

void check_add_rows(Check& t) {
  for (const size_t n : kSizes) {
    for (const size_t rows : {0u, 1u, 5u}) {
      const size_t stride = n + 3;
      const Floats x = t.draw(rows * stride), given = t.draw(n);
      Floats total = given;
      total.push_back(77);
      const size_t done = t.isa.add_rows(x.data(), static_cast<int64_t>(stride),
                                         static_cast<int64_t>(rows), total.data(), n);
      t.equal(n - done < 4 * static_cast<size_t>(t.isa.vector_floats), true);
      for (size_t j = 0; j < done; ++j) {
        double sum = given[j];
        for (size_t r = 0; r < rows; ++r) sum += x[r * stride + j];
        t.equal(total[j], sum, 8);
      }
      for (size_t j = done; j < n; ++j) t.equal(total[j], given[j]);
      t.equal(total[n], 77);
    }
  }
}

void check_larger_long(Check& t) {
  for (const size_t n : kSizes) {
    const auto a = draw_ends<int64_t>(t, n, false), b = draw_ends<int64_t>(t, n, false);
    for (const bool least : {false, true}) {
      std::vector<int64_t> y(n);
      const size_t done =
          t.isa.larger_long(a.data(), b.data(), least ? UINT64_MAX : 0, y.data(), n);
      check_done<int64_t>(t, done, n);
      for (size_t i = 0; i < done; ++i) {
        check_same(t, y[i], (a[i] < b[i]) == least ? a[i] : b[i], a[i]);
      }
    }
  }
}

void check_abs_long(Check& t) {
  for (const size_t n : kSizes) {
    std::vector<int64_t> x = draw_ends<int64_t>(t, n, false), y(n);
    const size_t done = t.isa.abs_long(x.data(), y.data(), n);
    check_done<int64_t>(t, done, n);
    for (size_t i = 0; i < done; ++i) {
      const auto bits = static_cast<uint64_t>(x[i]);
      check_same(t, y[i], static_cast<int64_t>(x[i] < 0 ? 0 - bits : bits), x[i]);
    }
  }
}

}  // namespace

#endif  // ETX_TESTS_WHOLE_VECTOR_CHECKS_H_
