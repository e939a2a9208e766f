// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cmath>

#include <etx/kernel.h>
#include <etx/portable/cast.h>
#include <etx/portable/dispatch.h>

#include "shape.h"

namespace etx::portable {
namespace {

/// The generator: number k since the process started is the k-th output of SplitMix64 with seed 0,
/// so a process that runs the same calls in the same order gets the same numbers.
std::atomic<uint64_t> numbers_used{0};

uint64_t split_mix(uint64_t k) {
  uint64_t z = (k + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// In [0, 1), a multiple of 2^-digits: a dtype with that precision holds all of these.
float uniform(uint64_t k, int digits) {
  return std::ldexp(static_cast<float>(split_mix(k) >> (64 - digits)), -digits);
}

/// Box-Muller on numbers 2k and 2k + 1.
float normal(uint64_t k, int /*digits*/) {
  constexpr double kTwoPi = 6.283185307179586;
  const double u = static_cast<double>((split_mix(2 * k) >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(split_mix(2 * k + 1) >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v));
}

Error fill(Context& context, IntList size, float (*draw)(uint64_t, int), const Tensor& out) {
  Shape shape;
  for (const int64_t item : size) shape.push(item);
  ETX_CHECK(context, is_floating(out.scalar_type()), NotSupported,
            "out must be of a floating dtype");
  ETX_TRY(resize_out(context, out, shape));
  const int digits = out.scalar_type() == ScalarType::Half       ? 11
                     : out.scalar_type() == ScalarType::BFloat16 ? 8
                                                                 : 24;
  const uint64_t count = static_cast<uint64_t>(out.numel());
  const uint64_t first = numbers_used.fetch_add(2 * count) / 2;
  for (uint64_t i = 0; i < count; ++i) {
    const float value = draw(first + i, digits);
    cast(&value, ScalarType::Float, 1, mutable_element_ptr(out, static_cast<int64_t>(i)),
         out.scalar_type(), 1);
  }
  return Error::Ok;
}

Error rand_out(Context& context, IntList size, Tensor& out) {
  return fill(context, size, uniform, out);
}

Error randn_out(Context& context, IntList size, Tensor& out) {
  return fill(context, size, normal, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::rand.out", rand_out, Floating::bits),
    ETX_KERNEL("aten::randn.out", randn_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(random_kernels, kRows);

}  // namespace etx::portable
