// SPDX-License-Identifier: BSD-3-Clause
/// The functions of vector_math.h at every STRIDE-th pattern of 32 bits, NaNs included, against
/// libm in double: prints the largest error in ulp of each; exits with 1 where one is over its
/// bound.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "isa/vector_math.h"

namespace {

using etx::portable::VecF;

struct Function {
  const char* name;
  VecF (*fast)(VecF);
  double (*exact)(double);
  double bound;
  float begin;  // Below, or where the result is not normal, 1e-37 of absolute error.
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }

const Function kFunctions[] = {
    {"exp", etx::portable::exp, std::exp, 1, -87.3f},
    {"exp_of_negative", etx::portable::exp_of_negative, std::exp, 1, -87},
    {"log", etx::portable::log, std::log, 1, -INFINITY},
    {"tanh", etx::portable::tanh, std::tanh, 3, -INFINITY},
    {"sigmoid", etx::portable::sigmoid, sigmoid, 3, -87},
    {"silu", etx::portable::silu, silu, 3, -84},
    {"erf", etx::portable::erf, std::erf, 3, -INFINITY},
    {"gelu", etx::portable::gelu, gelu, 3, 0},
};

double error(const Function& f, float x, float y) {
  const double want = f.exact(x);
  if (std::isnan(want) || std::isnan(y)) return std::isnan(want) && std::isnan(y) ? 0 : INFINITY;
  const auto nearest = static_cast<float>(want);
  if (y == nearest) return 0;
  if (std::isinf(y) || std::isinf(nearest)) return std::fabs(want) > 3.4e38 ? 0 : INFINITY;
  const double off = std::fabs(y - want);
  if (x < f.begin || std::fabs(want) < 1.2e-38)
    return off < (f.begin == 0 ? 2e-6 : 2e-37) ? 0 : off;
  return off / (std::nextafter(std::fabs(nearest), INFINITY) - std::fabs(nearest));
}

}  // namespace

int main(int, char** arguments) {
  const uint64_t stride = std::strtoull(arguments[1], nullptr, 10);
  int failed = 0;
  for (const Function& f : kFunctions) {
    double largest = 0;
    float at = 0;
    for (uint64_t i = 0; i < uint64_t{1} << 32; i += stride) {
      const auto pattern = static_cast<uint32_t>(i);
      float x;
      std::memcpy(&x, &pattern, sizeof(x));
      if (f.fast == etx::portable::exp_of_negative && x > 0) continue;
      float y[etx::portable::kLanes];
      etx::portable::store(y, f.fast(etx::portable::splat(x)));
      const double e = error(f, x, y[0]);
      if (!(e <= largest)) largest = e, at = x;
    }
    std::printf("%s: %.3g ulp at %a\n", f.name, largest, static_cast<double>(at));
    failed += !(largest <= f.bound);
  }
  return failed != 0;
}
