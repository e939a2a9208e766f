// SPDX-License-Identifier: BSD-3-Clause
/// Elementwise functions of one tensor without parameters; the rows are in unary.def.

#include <cstring>
#include <limits>

#include "core/complex.h"
#include "core/dispatch.h"
#include "core/loops.h"
#include "core/map.h"
#include "isa/float_series.h"
#include "isa/sine_series.h"

namespace etx::portable {
namespace {

enum class Result { Same, ToFloat, ToBool };

struct UnaryOp {
  Result result;
  uint64_t dtypes;
  Loops loops;
  Loop of_bits = nullptr;  ///< On the bits of float16 and bfloat16.
};

/// Infinite for floating types; 0 with `absolute(x) == 0` excluded for integers.
template <typename T>
constexpr T infinity() {
  return std::is_integral_v<T> ? T(-1) : std::numeric_limits<T>::infinity();
}

template <typename T>
T zero_to_six(T x) {
  return x < 0 ? T(0) : (x > 6 ? T(6) : x);
}

template <typename Op, typename T>
constexpr Loop loop_of(Result result) {
  return result == Result::ToBool ? &unary_loop<Op, T, bool> : &unary_loop<Op, T, T>;
}

using DoubleLoop = void (*)(const double* x, double* y, size_t n);

template <DoubleLoop Isa::* member>
void isa_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  (isa().*member)(static_cast<const double*>(in[0]), static_cast<double*>(out),
                  static_cast<size_t>(n));
}

/// All elements by a loop that does those which fill vectors.
template <typename T, typename F>
void in_vectors(const void* const* in, void* out, int64_t n, const F& loop) {
  constexpr size_t kWidth = 64 / sizeof(T);
  const T* const x = static_cast<const T*>(in[0]);
  T* const y = static_cast<T*>(out);
  const size_t done = loop(x, y, static_cast<size_t>(n)), rest = static_cast<size_t>(n) - done;
  if (rest == 0) return;
  T last[kWidth] = {};
  std::memcpy(last, x + done, rest * sizeof(T));
  loop(last, last, kWidth);
  std::memcpy(y + done, last, rest * sizeof(T));
}

void relu_long_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  in_vectors<int64_t>(in, out, n, [](const int64_t* x, int64_t* y, size_t count) {
    return isa().clamp_long(x, 0, INT64_MAX, y, count);
  });
}
void relu_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  in_vectors<double>(in, out, n, [](const double* x, double* y, size_t count) {
    return isa().clamp_double(x, 0, std::numeric_limits<double>::infinity(), y, count);
  });
}
void abs_long_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  in_vectors<int64_t>(in, out, n, isa().abs_long);
}

[[gnu::noinline]] void root_all(const void* const* in, void* out, int64_t n, bool root,
                                bool reciprocal) {
  in_vectors<double>(in, out, n, [=](const double* x, double* y, size_t count) {
    return isa().root_double(x, y, count, root, reciprocal);
  });
}
template <bool root, bool reciprocal>
void root_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  root_all(in, out, n, root, reciprocal);
}

constexpr int64_t kBlock = 256;

/// `f(x, y, n)` of blocks, which may lie on each other.
[[gnu::noinline]] void blocks_of_doubles(const void* const* in, void* out, int64_t n,
                                         DoubleLoop f) {
  const double* const x = static_cast<const double*>(in[0]);
  double* const y = static_cast<double*>(out);
  for (int64_t i = 0; i < n; i += kBlock) {
    f(x + i, y + i, static_cast<size_t>(minimum(n - i, kBlock)));
  }
}

/// One division, as eager has it: x sigmoid(x) is rounded twice.
void silu_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  blocks_of_doubles(in, out, n, [](const double* x, double* y, size_t count) {
    double grown[kBlock];
    for (size_t i = 0; i < count; ++i) grown[i] = -x[i];
    isa().exp_double(grown, grown, count);
    for (size_t i = 0; i < count; ++i) y[i] = x[i] / (1 + grown[i]);
  });
}

/// What 1 + x rounds off is put back: log(u + d) is log(u) + d / u.
void log1p_doubles(const double* x, double* y, size_t n) {
  double log[kBlock];
  for (size_t i = 0; i < n; ++i) log[i] = 1 + x[i];
  isa().log_double(log, log, n);
  for (size_t i = 0; i < n; ++i) {
    const double u = 1 + x[i], lost = (x[i] - (u - 1)) / u;
    y[i] = x[i] == 0 ? x[i] : (u > 0 && u < infinity<double>() ? log[i] + lost : log[i]);
  }
}
void log1p_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  blocks_of_doubles(in, out, n, log1p_doubles);
}

/// log((1 + x) / (1 - x)) / 2, where the quotient is 1 + 2x / (1 - x).
void atanh_double_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  blocks_of_doubles(in, out, n, [](const double* x, double* y, size_t count) {
    double more[kBlock];
    for (size_t i = 0; i < count; ++i) more[i] = std::fabs(x[i]) * 2 / (1 - std::fabs(x[i]));
    log1p_doubles(more, more, count);
    for (size_t i = 0; i < count; ++i) y[i] = std::copysign(0.5 * more[i], x[i]);
  });
}

struct neg_bits {
  static uint16_t apply(uint16_t x) { return x ^ 0x8000u; }
};
struct abs_bits {
  static uint16_t apply(uint16_t x) { return x & 0x7fffu; }
};
/// `user` is -inf of the dtype: what is beyond it as a number without sign is NaN.
void relu_bits_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  const uint16_t lowest = *static_cast<const uint16_t*>(user);
  const uint16_t* const x = static_cast<const uint16_t*>(in[0]);
  uint16_t* const y = static_cast<uint16_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0x8000u && x[i] <= lowest ? 0 : x[i];
}
constexpr uint16_t kLowestHalf = 0xFC00, kLowestBFloat16 = 0xFF80;
constexpr bool kBitsBuilt = !kIsSmall && any_built(ScalarType::Half, ScalarType::BFloat16);

template <typename Op, Result result, typename List, UnaryLoop Isa::* fast>
constexpr UnaryOp make_unary() {
  UnaryOp op{result, List::bits, {}};
  if constexpr (kBitsBuilt && fast == &Isa::neg) {
    op.of_bits = &unary_loop<neg_bits, uint16_t, uint16_t>;
  }
  if constexpr (kBitsBuilt && fast == &Isa::abs) {
    op.of_bits = &unary_loop<abs_bits, uint16_t, uint16_t>;
  }
  if constexpr (kBitsBuilt && fast == &Isa::relu) op.of_bits = &relu_bits_loop;
  if constexpr (result != Result::ToFloat) op.loops.of_long = loop_of<Op, int64_t>(result);
  if constexpr (fast == &Isa::relu) op.loops.of_long = &relu_long_loop;
  if constexpr (fast == &Isa::abs) op.loops.of_long = &abs_long_loop;
  if constexpr (result == Result::Same && fast != nullptr) {
    op.loops.of_int = loop_of<Op, int32_t>(result);
    op.loops.of_short = loop_of<Op, int16_t>(result);
    op.loops.of_char = loop_of<Op, int8_t>(result);
    op.loops.of_byte = loop_of<Op, uint8_t>(result);
  }
  if constexpr (List::contains(ScalarType::Float)) {
    op.loops.of_double = loop_of<Op, double>(result);
    if constexpr (fast == &Isa::rsqrt) op.loops.of_double = &root_double_loop<true, true>;
    if constexpr (fast == &Isa::sqrt) op.loops.of_double = &root_double_loop<true, false>;
    if constexpr (fast == &Isa::reciprocal) op.loops.of_double = &root_double_loop<false, true>;
    if constexpr (fast == &Isa::relu) op.loops.of_double = &relu_double_loop;
    if constexpr (fast == &Isa::log) op.loops.of_double = &isa_double_loop<&Isa::log_double>;
    if constexpr (fast == &Isa::silu) op.loops.of_double = &silu_double_loop;
    if constexpr (fast == &Isa::expm1) op.loops.of_double = &isa_double_loop<&Isa::expm1_double>;
    if constexpr (fast == &Isa::exp) op.loops.of_double = &isa_double_loop<&Isa::exp_double>;
    if constexpr (fast == &Isa::tanh) op.loops.of_double = &isa_double_loop<&Isa::tanh_double>;
    if constexpr (fast == &Isa::erf) op.loops.of_double = &isa_double_loop<&Isa::erf_double>;
    if constexpr (fast == &Isa::sigmoid) {
      op.loops.of_double = &isa_double_loop<&Isa::sigmoid_double>;
    }
    if constexpr (fast != nullptr) {
      op.loops.of_float = &isa_unary_loop<fast>;
    } else {
      op.loops.of_float = loop_of<Op, float>(result);
    }
  }
  return op;
}

Error unary(Context& context, const Tensor& in, const Tensor& out, const UnaryOp& op) {
  const ScalarType from = in.scalar_type();
  const ScalarType to = out.scalar_type();
  ETX_CHECK(context, (op.dtypes & dtype_bit(from)) != 0, NotSupported,
            "the operator does not support the dtype of self");
  Map m;
  switch (op.result) {
    case Result::Same:
      ETX_CHECK(context, to == from, InvalidArgument, "out must have the dtype of self");
      m.out_as = wide(from);
      break;
    case Result::ToFloat:
      ETX_CHECK(context, is_floating(to), InvalidArgument, "out must have a floating dtype");
      m.out_as = wide(to);
      m.grain = 8192;
      break;
    case Result::ToBool: m.out_as = ScalarType::Bool; break;
  }
  ScalarType as = op.result == Result::ToBool ? wide(from) : m.out_as;
  m.loop = op.loops[as];
  if (const Loop narrow = op.loops.narrow(from); narrow != nullptr) {
    m.loop = narrow;
    m.out_as = as = from;
  }
  if (op.of_bits != nullptr && (from == ScalarType::Half || from == ScalarType::BFloat16)) {
    m.loop = op.of_bits;
    m.user = from == ScalarType::Half ? &kLowestHalf : &kLowestBFloat16;
    m.out_as = as = from;
  }
  const Operand operands[] = {Operand(in, as)};
  return map(context, operands, out, m);
}

/// `f(x, y, n)` of blocks whose n is a multiple of vectors; it may write to x.
[[gnu::noinline]] void in_blocks(const void* const* in, void* out, int64_t n,
                                 void (*f)(float* x, float* y, size_t n)) {
  constexpr size_t kWidth = 16;
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  float from[kBlock] = {}, to[kBlock];
  for (; n > 0; n -= kBlock, x += kBlock, y += kBlock) {
    const auto count = static_cast<size_t>(minimum(n, kBlock));
    std::memcpy(from, x, count * sizeof(float));
    f(from, to, (count + kWidth - 1) / kWidth * kWidth);
    std::memcpy(y, to, count * sizeof(float));
  }
}
template <void (*f)(float* x, float* y, size_t n)>
void block_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  in_blocks(in, out, n, f);
}

constexpr Logarithm kLog1p = {1, 1, 0x1p-27, false}, kAtanh = {1, 0.5, 0x1p-13, true};
constexpr Logarithm kLog2 = {0, 1.4426950408889634, 0, false};
constexpr Logarithm kLog10 = {0, 0.4342944819032518, 0, false};

template <const Logarithm& of>
void logarithm(float* x, float* y, size_t n) {
  isa().log_float(x, y, n, of, kLogOfFloats);
}
template <bool sine>
void hyperbolic(float* x, float* y, size_t n) {
  isa().hyperbolic_float(x, y, n, sine, kExpOfFloats);
}
void complement(float* x, float* y, size_t n) {
  isa().erfc_float(x, y, n, kExpOfFloats, kErfcOfFloats);
}

void arc_tangent(float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = 1;
  isa().angle_float(x, y, y, n, kArcOfFloats);
}
/// The angle between x and sqrt(1 - x^2).
template <bool cosine>
void arc(float* x, float* y, size_t n) {
  float root[kBlock];
  isa().rsub_scalar(x, 1, root, n);
  isa().add_scalar(x, 1, y, n);
  isa().mul(root, y, root, n);
  isa().sqrt(root, root, n);
  isa().angle_float(cosine ? root : x, cosine ? x : root, y, n, kArcOfFloats);
}

void tangent(float* x, float* y, size_t n) {
  bool left = false;
  isa().tan_float(x, y, n, kSineOfFloats, left);
  for (size_t i = 0; left && i < n; ++i) y[i] = std::tan(x[i]);
}

#define ETX_IN_DOUBLE(op, expression, function, of_double)                               \
  struct op##_op {                                                                       \
    template <typename T>                                                                \
    static T apply(T x) {                                                                \
      return expression;                                                                 \
    }                                                                                    \
  };                                                                                     \
  Error op##_out(Context& context, const Tensor& self, Tensor& out) {                    \
    static constexpr UnaryOp kOp = {                                                     \
        Result::ToFloat,                                                                 \
        RealBool::bits,                                                                  \
        {nullptr, kIsSmall ? &unary_loop<op##_op, float, float> : &block_loop<function>, \
         of_double != nullptr ? of_double : &unary_loop<op##_op, double, double>}};      \
    return unary(context, self, out, kOp);                                               \
  }
#define ETX_UNARY(op, dtypes, result, expression, fast)                                 \
  struct op##_op {                                                                      \
    template <typename T>                                                               \
    static auto apply(T x) {                                                            \
      return expression;                                                                \
    }                                                                                   \
  };                                                                                    \
  Error op##_out(Context& context, const Tensor& self, Tensor& out) {                   \
    static constexpr UnaryOp kOp = make_unary<op##_op, Result::result, dtypes, fast>(); \
    return unary(context, self, out, kOp);                                              \
  }
#include "ops/elementwise/unary.def"
#undef ETX_IN_DOUBLE
#undef ETX_UNARY

struct abs_op {
  template <typename T>
  static auto apply(T x) {
    return absolute(x);
  }
};

Error abs_out(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = make_unary<abs_op, Result::Same, Real, &Isa::abs>();
  if (is_complex(self.scalar_type())) return complex_abs(context, self, out);
  return unary(context, self, out, kOp);
}

struct same_op {
  static int64_t apply(int64_t x) { return x; }
};
template <typename T>
[[gnu::noinline]] void round_all(const void* const* in, void* out, int64_t n, Rounding to) {
  in_vectors<T>(in, out, n, [to](const T* x, T* y, size_t count) {
    if constexpr (std::is_same_v<T, float>) {
      return isa().round_float(x, y, count, to);
    } else {
      return isa().round_double(x, y, count, to);
    }
  });
}
template <typename T, Rounding to>
void rounding_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  round_all<T>(in, out, n, to);
}

template <Rounding to>
Error rounded(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {Result::Same,
                                  Real::bits,
                                  {&unary_loop<same_op, int64_t, int64_t>,
                                   &rounding_loop<float, to>, &rounding_loop<double, to>}};
  return unary(context, self, out, kOp);
}

struct sin_op {
  template <typename T>
  static T apply(T x) {
    return std::sin(x);
  }
};
struct cos_op {
  template <typename T>
  static T apply(T x) {
    return std::cos(x);
  }
};

/// The sine, or the cosine; of what Isa leaves as it is by libm.
template <typename T>
[[gnu::noinline]] void circular_all(const void* const* in, void* out, int64_t n, bool is_sine) {
  bool left = false;
  const double ahead = is_sine ? 0 : 0.5;
  in_vectors<T>(in, out, n, [&](const T* x, T* y, size_t count) {
    if constexpr (std::is_same_v<T, float>) {
      return isa().circular_float(x, y, count, ahead, kSineOfFloats, left);
    } else {
      return isa().circular_double(x, y, count, ahead, kSineOfDoubles, left);
    }
  });
  T* const y = static_cast<T*>(out);
  for (int64_t i = 0; left && i < n; ++i) {
    if (!(std::fabs(y[i]) <= 2)) y[i] = is_sine ? sin_op::apply(y[i]) : cos_op::apply(y[i]);
  }
}
template <typename Op, typename T>
void circular_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  circular_all<T>(in, out, n, std::is_same_v<Op, sin_op>);
}

/// Without vectors, float64 costs more than what libm does in float32.
#if defined(__SSE2__) || defined(__ARM_NEON)
constexpr bool kInVectors = true;
#else
constexpr bool kInVectors = !kIsSmall;
#endif

template <typename Op>
Error circular(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {
      Result::ToFloat,
      RealBool::bits,
      {nullptr, kInVectors ? &circular_loop<Op, float> : &unary_loop<Op, float, float>,
       kInVectors ? &circular_loop<Op, double> : &unary_loop<Op, double, double>}};
  return unary(context, self, out, kOp);
}

struct invert_op {
  static int64_t apply(int64_t x) { return ~x; }
};

/// ~self; of bool: not self.
Error bitwise_not_out(Context& context, const Tensor& self, Tensor& out) {
  static constexpr UnaryOp kOp = {
      Result::Same, Integral::bits, {&unary_loop<invert_op, int64_t, int64_t>, nullptr, nullptr}};
  if (self.scalar_type() == ScalarType::Bool) return logical_not_out(context, self, out);
  return unary(context, self, out, kOp);
}

constexpr uint64_t kAbs = Real::bits | dtype_bit(ScalarType::ComplexHalf) |
                          dtype_bit(ScalarType::ComplexFloat) |
                          dtype_bit(ScalarType::ComplexDouble);

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::abs.out", abs_out, kAbs | kInPlace),
    ETX_KERNEL("aten::bitwise_not.out", bitwise_not_out, IntegralBool::bits | kInPlace),
    ETX_KERNEL("aten::ceil.out", rounded<Rounding::Up>, Real::bits | kInPlace),
    ETX_KERNEL("aten::floor.out", rounded<Rounding::Down>, Real::bits | kInPlace),
    ETX_KERNEL("aten::round.out", rounded<Rounding::Nearest>, Real::bits | kInPlace),
    ETX_KERNEL("aten::trunc.out", rounded<Rounding::ToZero>, Real::bits | kInPlace),
    ETX_KERNEL("aten::cos.out", circular<cos_op>, RealBool::bits | kInPlace),
    ETX_KERNEL("aten::sin.out", circular<sin_op>, RealBool::bits | kInPlace),
#define ETX_IN_DOUBLE(op, expression, function, of_double) \
  ETX_KERNEL("aten::" #op ".out", op##_out, RealBool::bits | kInPlace),
#define ETX_UNARY(op, dtypes, result, expression, fast) \
  ETX_KERNEL("aten::" #op ".out", op##_out, dtypes::bits | kInPlace),
#include "ops/elementwise/unary.def"
#undef ETX_IN_DOUBLE
#undef ETX_UNARY
};

}  // namespace

ETX_KERNEL_TABLE(unary_kernels, kRows);

}  // namespace etx::portable
