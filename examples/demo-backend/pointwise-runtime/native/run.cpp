// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>

#include "code.h"

// One build for every x86-64: the widest vectors that the machine has are chosen when it is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define POINTWISE_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define POINTWISE_CLONES
#endif

namespace pointwise {
namespace {

template <typename F>
void map(const float* a, float* __restrict out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

template <typename F>
void zip(const float* a, const float* b, float* __restrict out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

/// Computes an operation on registers for `n` elements.
POINTWISE_CLONES void compute(Op op, const float* a, const float* b, float* out, int64_t n) {
  switch (op) {
    case Op::Neg: return map(a, out, n, [](float x) { return -x; });
    case Op::Abs: return map(a, out, n, [](float x) { return std::fabs(x); });
    case Op::Relu: return map(a, out, n, [](float x) { return x < 0 ? 0.0f : x; });
    case Op::Sqrt: return map(a, out, n, [](float x) { return std::sqrt(x); });
    case Op::Reciprocal: return map(a, out, n, [](float x) { return 1 / x; });
    case Op::Exp: return map(a, out, n, [](float x) { return std::exp(x); });
    case Op::Tanh: return map(a, out, n, [](float x) { return std::tanh(x); });
    case Op::Sigmoid: return map(a, out, n, [](float x) { return 1 / (1 + std::exp(-x)); });
    case Op::Add: return zip(a, b, out, n, [](float x, float y) { return x + y; });
    case Op::Sub: return zip(a, b, out, n, [](float x, float y) { return x - y; });
    case Op::Mul: return zip(a, b, out, n, [](float x, float y) { return x * y; });
    case Op::Div: return zip(a, b, out, n, [](float x, float y) { return x / y; });
    case Op::Minimum:
      return zip(a, b, out, n, [](float x, float y) { return x < y || x != x ? x : y; });
    case Op::Maximum:
      return zip(a, b, out, n, [](float x, float y) { return x > y || x != x ? x : y; });
    default: return;
  }
}

}  // namespace

void run(const Code& code, const float* const* inputs, float* const* outputs, float* scratch,
         int64_t begin, int64_t end) {
  const float* where[kMost + 1] = {};
  for (size_t i = 0; i < code.instructions; ++i) {
    const Instruction& row = code.code[i];
    if (row.op != Op::Splat && row.op != Op::Constant) continue;
    float* own = scratch + row.target * code.block;
    std::fill_n(own, code.block, row.op == Op::Splat ? *inputs[row.a] : code.constant(row.a));
    where[row.target] = own;
  }
  for (int64_t at = begin; at < end; at += code.block) {
    const int64_t n = std::min(code.block, end - at);
    for (size_t i = 0; i < code.instructions; ++i) {
      const Instruction& row = code.code[i];
      if (row.op == Op::Load) {
        where[row.target] = inputs[row.a] + at;
      } else if (row.op == Op::Tensor) {
        where[row.target] = code.named[row.a].data + at;
      } else if (row.op == Op::Store) {
        std::memcpy(outputs[row.target] + at, where[row.a], static_cast<size_t>(n) * sizeof(float));
      } else if (row.op > Op::Store) {
        float* own = scratch + row.target * code.block;
        compute(row.op, where[row.a], where[row.b], own, n);
        where[row.target] = own;
      }
    }
  }
}

}  // namespace pointwise
