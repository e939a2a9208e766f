// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LOOPS_H_
#define ETX_PORTABLE_LOOPS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/element.h"
#include "core/map.h"
#include "isa/isa.h"
#include "selection.h"

namespace etx::portable {

/// A loop that is null where a build leaves out the type in which it computes.
template <ScalarType type>
struct LoopFor {
  Loop loop = nullptr;
  constexpr LoopFor() = default;
  constexpr LoopFor(Loop given) : loop(is_computed(type) ? given : nullptr) {}
  constexpr operator Loop() const { return loop; }
};

constexpr bool kNarrowBuilt =
    !kIsSmall && any_built(ScalarType::Int, ScalarType::Short, ScalarType::Char, ScalarType::Byte);

/// A loop on integers of fewer bits than int64 as they are; null where a build leaves them out.
template <ScalarType type>
struct NarrowLoop {
  Loop loop = nullptr;
  constexpr NarrowLoop() = default;
  constexpr NarrowLoop(Loop given) : loop(!kIsSmall && is_built(type) ? given : nullptr) {}
  constexpr operator Loop() const { return loop; }
};

/// The loops of one operator for the types in which it is computed; null where it has none.
struct Loops {
  LoopFor<ScalarType::Long> of_long = {};
  LoopFor<ScalarType::Float> of_float = {};
  LoopFor<ScalarType::Double> of_double = {};
  /// On float, where float16 and bfloat16 are rounded on the way and not only at the end.
  LoopFor<ScalarType::Half> of_half = {};
  LoopFor<ScalarType::BFloat16> of_bfloat16 = {};
  /// A second operand of one element is not rounded to float16 or bfloat16 first, nor anything on
  /// the way.
  bool wide_single = false;
  /// Where modulo 2^bits, or with no more bits, the result is that of int64.
  NarrowLoop<ScalarType::Int> of_int = {};
  NarrowLoop<ScalarType::Short> of_short = {};
  NarrowLoop<ScalarType::Char> of_char = {};
  NarrowLoop<ScalarType::Byte> of_byte = {};

  constexpr Loop narrow(ScalarType dtype) const {
    if constexpr (!kNarrowBuilt) return nullptr;
    switch (dtype) {
      case ScalarType::Int: return of_int;
      case ScalarType::Short: return of_short;
      case ScalarType::Char: return of_char;
      case ScalarType::Byte: return of_byte;
      default: return nullptr;
    }
  }

  /// The loop for results of this dtype, in its wide type.
  constexpr Loop for_dtype(ScalarType dtype) const {
    if (dtype == ScalarType::Half && of_half != nullptr) return of_half;
    if (dtype == ScalarType::BFloat16 && of_bfloat16 != nullptr) return of_bfloat16;
    if (dtype == ScalarType::Double) return of_double;
    return is_floating(dtype) ? Loop(of_float) : Loop(of_long);
  }

  constexpr Loop operator[](ScalarType wide_type) const {
    switch (wide_type) {
      case ScalarType::Long: return of_long;
      case ScalarType::Float: return of_float;
      case ScalarType::Double: return of_double;
      default: return nullptr;
    }
  }
};

/// Fewer elements than this are not worth a loop of Isa.
constexpr int64_t kVector = 8;

/// y[i] = Op::apply(x[i]).
template <typename Op, typename T, typename R>
void unary_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  R* y = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(Op::apply(x[i]));
}

template <UnaryLoop Isa::* member>
void isa_unary_loop(const void*, const void* const* in, uint32_t, void* out, int64_t n) {
  (isa().*member)(static_cast<const float*>(in[0]), static_cast<float*>(out),
                  static_cast<size_t>(n));
}

/// y[i] = f(a[i], b[i]), either of which may be one element.
template <typename T, typename R, typename F>
void each_pair(const void* const* in, uint32_t scalars, void* out, int64_t n, const F& f) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  R* y = static_cast<R*>(out);
  if (scalars == 0) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<R>(f(load_element(a + i), load_element(b + i)));
    }
  } else if (scalars == 2) {
    const T shared = load_element(b);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(f(load_element(a + i), shared));
  } else if (scalars == 1) {
    const T shared = load_element(a);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(f(shared, load_element(b + i)));
  } else {
    const R same = static_cast<R>(f(load_element(a), load_element(b)));
    for (int64_t i = 0; i < n; ++i) y[i] = same;
  }
}

template <typename Op, typename T, typename R>
void binary_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  each_pair<T, R>(in, scalars, out, n, [](T a, T b) { return Op::apply(a, b); });
}

/// The same with loops on integers of fewer bits; the sign is of account only where `is_signed`.
template <typename Op, bool is_signed, typename Result = void>
constexpr Loops with_narrow(Loops loops) {
  const auto loop = [](auto zero) {
    using T = decltype(zero);
    return &binary_loop<Op, T, std::conditional_t<std::is_void_v<Result>, T, Result>>;
  };
  loops.of_byte = loop(uint8_t{0});
  if constexpr (is_signed) {
    loops.of_int = loop(int32_t{0});
    loops.of_short = loop(int16_t{0});
    loops.of_char = loop(int8_t{0});
  } else {
    loops.of_int = loop(uint32_t{0});
    loops.of_short = loop(uint16_t{0});
    loops.of_char = loop(uint8_t{0});
  }
  return loops;
}

/// The float32 loops of an operator in Isa: vector and vector, vector and scalar, scalar and
/// vector.
template <typename Op, BinaryLoop Isa::* vv, ScalarLoop Isa::* vs, ScalarLoop Isa::* sv>
void isa_binary_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const float* a = static_cast<const float*>(in[0]);
  const float* b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  const size_t count = static_cast<size_t>(n);
  if (scalars == 0 && n >= kVector) return (isa().*vv)(a, b, y, count);
  if constexpr (vs != nullptr) {
    if (scalars == 2) return (isa().*vs)(a, *b, y, count);
    if (scalars == 1) return (isa().*sv)(b, *a, y, count);
  }
  each_pair<float, float>(in, scalars, out, n, [](float p, float q) { return Op::apply(p, q); });
}

/// Integer arithmetic that wraps, in a type that C++ does not make an int.
template <typename T>
using Wrapped = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T>
using IfIntegral = std::enable_if_t<std::is_integral_v<T>, T>;

template <typename T>
IfIntegral<T> wrap_add(T a, T b) {
  return static_cast<T>(static_cast<Wrapped<T>>(a) + static_cast<Wrapped<T>>(b));
}
template <typename T>
IfIntegral<T> wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<Wrapped<T>>(a) - static_cast<Wrapped<T>>(b));
}
template <typename T>
IfIntegral<T> wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<Wrapped<T>>(a) * static_cast<Wrapped<T>>(b));
}
inline float wrap_add(float a, float b) { return a + b; }
inline float wrap_sub(float a, float b) { return a - b; }
inline float wrap_mul(float a, float b) { return a * b; }
inline double wrap_add(double a, double b) { return a + b; }
inline double wrap_sub(double a, double b) { return a - b; }
inline double wrap_mul(double a, double b) { return a * b; }

template <typename T>
T negate(T x) {
  if constexpr (std::is_integral_v<T>)
    return wrap_sub(T{0}, x);
  else
    return -x;
}
template <typename T>
T absolute(T x) {
  if constexpr (std::is_integral_v<T>) {
    const T sign = static_cast<T>(-(x < 0));
    return wrap_sub(static_cast<T>(x ^ sign), sign);
  } else {
    return std::fabs(x);
  }
}

/// NaN where either is.
template <typename T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_LOOPS_H_
