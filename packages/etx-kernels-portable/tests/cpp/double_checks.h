// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_DOUBLE_CHECKS_H_
#define ETX_TESTS_DOUBLE_CHECKS_H_

/// Functions of float64; loops of float32 that compute in it, rounded once, and exact rests.

#include <iterator>

#include "isa/float_series.h"
#include "isa/sine_series.h"
#include "whole_vector_checks.h"

namespace {

const float kEnds[] = {0,         -0.0f,     1,      -1,      kInfinity, -kInfinity,
                       kNan,      1e-45f,    3e-39f, 0.5f,    1e-30f,    1e30f,
                       1.000001f, 0.999999f, 100,    -100.0f, -1e-8f,    1e-4f};

/// Rounded once, or equal where there is no number or it is zero.
void check_rounded(const Check& t, float actual, double expected, float of) {
  const auto nearest = static_cast<float>(expected);
  const double step = std::nextafter(std::fabs(nearest), kInfinity) - std::fabs(nearest);
  const bool near = std::isfinite(nearest) && nearest != 0 &&
                    std::fabs(static_cast<double>(actual) - expected) <= 0.52 * step;
  check_same(t, near ? nearest : actual, nearest, of);
}

/// Numbers of all sizes and both signs, with the ends among them.
Floats of_all_sizes(Check& t, size_t n, size_t first) {
  Floats x(n);
  for (size_t i = 0; i < n; ++i) {
    x[i] = i % 3 == 0 ? kEnds[(first + i / 3) % std::size(kEnds)]
                      : std::ldexp(t.draw(), static_cast<int>(i * 7 % 40) - 30);
  }
  return x;
}

template <typename Loop, typename Expected>
void check_in_double(Check& t, const Loop& loop, const Expected& expected) {
  for (const size_t n : kSizes) {
    const Floats x = of_all_sizes(t, n, n);
    Floats y(n);
    const size_t done = loop(x.data(), y.data(), n);
    check_done<float>(t, done, n);
    for (size_t i = 0; i < done; ++i) {
      check_rounded(t, y[i], expected(static_cast<double>(x[i])), x[i]);
    }
  }
}

/// Over all exponents: a function of float64 next to libm.
void check_double(Check& t, void (*loop)(const double*, double*, size_t),
                  double (*expected)(double)) {
  for (const size_t n : kSizes) {
    std::vector<double> x, y(n);
    for (size_t i = 0; i < n; ++i) {
      x.push_back(i % 2 == 0 ? std::ldexp(t.draw(), static_cast<int>(i) - 60) : 200.0 * t.draw());
    }
    if (n > 4) x[1] = kNan, x[2] = kInfinity, x[3] = -kInfinity;
    loop(x.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) {
      const double value = expected(x[i]);
      if (y[i] == value || (std::isnan(y[i]) && std::isnan(value))) continue;
      if (std::fabs(y[i] - value) <= 1e-15 * std::fabs(value) + 1e-323) continue;
      std::printf("%s, %s of %.17g: %.17g, not %.17g\n", t.isa.name, t.member, x[i], y[i], value);
      std::exit(1);
    }
  }
}
void check_log_double(Check& t) { check_double(t, t.isa.log_double, std::log); }
void check_expm1_double(Check& t) { check_double(t, t.isa.expm1_double, std::expm1); }
void check_exp_double(Check& t) { check_double(t, t.isa.exp_double, std::exp); }
void check_sigmoid_double(Check& t) {
  check_double(t, t.isa.sigmoid_double, [](double x) { return 1 / (1 + std::exp(-x)); });
}
void check_tanh_double(Check& t) { check_double(t, t.isa.tanh_double, std::tanh); }
void check_erf_double(Check& t) { check_double(t, t.isa.erf_double, std::erf); }

void check_log_float(Check& t) {
  using etx::portable::Logarithm;
  const auto loop_of = [&t](const Logarithm& of) {
    return [&t, of](const float* x, float* y, size_t n) {
      return t.isa.log_float(x, y, n, of, etx::portable::kLogOfFloats);
    };
  };
  check_in_double(t, loop_of({0, 1 / std::log(2.0), 0, false}),
                  [](double x) { return std::log2(x); });
  check_in_double(t, loop_of({1, 1, 0x1p-27, false}), [](double x) { return std::log1p(x); });
  check_in_double(t, loop_of({1, 0.5, 0x1p-13, true}), [](double x) { return std::atanh(x); });
}

void check_angle_float(Check& t) {
  for (const size_t n : kSizes) {
    if (n == 0) continue;
    for (size_t first = 0; first < std::size(kEnds); ++first) {
      const Floats s = of_all_sizes(t, n, first), c = of_all_sizes(t, n, 5 * first + n);
      Floats y(n);
      const size_t done =
          t.isa.angle_float(s.data(), c.data(), y.data(), n, etx::portable::kArcOfFloats);
      check_done<float>(t, done, n);
      for (size_t i = 0; i < done; ++i) {
        const auto a = static_cast<double>(s[i]), b = static_cast<double>(c[i]);
        check_rounded(t, y[i], std::atan2(a, b), s[i]);
      }
    }
  }
}

void check_hyperbolic_float(Check& t) {
  for (const bool sine : {false, true}) {
    const auto loop = [&t, sine](const float* x, float* y, size_t n) {
      return t.isa.hyperbolic_float(x, y, n, sine, etx::portable::kExpOfFloats);
    };
    check_in_double(t, loop, [sine](double x) { return sine ? std::sinh(x) : std::cosh(x); });
  }
}

void check_erfc_float(Check& t) {
  const auto loop = [&t](const float* x, float* y, size_t n) {
    return t.isa.erfc_float(x, y, n, etx::portable::kExpOfFloats, etx::portable::kErfcOfFloats);
  };
  check_in_double(t, loop, [](double x) { return std::erfc(x); });
}

void check_tan_float(Check& t) {
  for (const size_t n : kSizes) {
    const Floats x = of_all_sizes(t, n, n);
    Floats y(n);
    bool left = false, expected = false;
    const size_t done = t.isa.tan_float(x.data(), y.data(), n, etx::portable::kSineOfFloats, left);
    check_done<float>(t, done, n);
    for (size_t i = 0; i < done; ++i) {
      const bool near = std::fabs(x[i]) <= 1048576;
      expected = expected || !near;
      if (near) check_rounded(t, y[i], std::tan(static_cast<double>(x[i])), x[i]);
    }
    t.equal(left, expected);
  }
}

float rest_of(etx::portable::Rest rest, float a, float b) {
  using etx::portable::Rest;
  const float left = std::fmod(a, b);
  const bool other_side = left != 0 && (left < 0) != (b < 0);
  if (rest == Rest::OfTrunc) return left;
  if (rest == Rest::OfFloor) return other_side ? left + b : left;
  return static_cast<float>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}

void check_rest_float(Check& t) {
  using etx::portable::Rest;
  for (const Rest rest : {Rest::OfTrunc, Rest::OfFloor, Rest::Floor}) {
    for (const size_t n : kSizes) {
      if (n == 0) continue;
      for (size_t first = 0; first < std::size(kEnds); ++first) {
        const Floats a = of_all_sizes(t, n, first), b = of_all_sizes(t, n, 5 * first + n);
        Floats y(n);
        bool left = false, expected = false;
        const size_t done = t.isa.rest_float(a.data(), b.data(), y.data(), n, rest, left);
        check_done<float>(t, done, n);
        for (size_t i = 0; i < done; ++i) {
          const float d = b[i];
          const double quotient = static_cast<double>(a[i]) / static_cast<double>(d);
          const bool near = std::fabs(quotient) < 4194304 && std::isfinite(d);
          expected = expected || !near;
          if (!near) continue;
          check_same(t, y[i], rest_of(rest, a[i], d), a[i]);
        }
        t.equal(left, expected);
      }
    }
  }
}

}  // namespace

#endif  // ETX_TESTS_DOUBLE_CHECKS_H_
