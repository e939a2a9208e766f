// SPDX-License-Identifier: BSD-3-Clause
/// Elementwise functions of one tensor with parameters.

#include <cstring>
#include <limits>
#include <optional>

#include "core/shape.h"
#include "ops/elementwise/arithmetic.h"

namespace etx::portable {
namespace {

/// y[i] = f(x[i]), where `user` is the F.
template <typename F, typename T>
void function_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  const F f = *static_cast<const F*>(user);
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <typename F>
constexpr Loops kFunction = {nullptr, &function_loop<F, float>, &function_loop<F, double>};

Error apply(Context& context, const Tensor& in, const Tensor& out, const Loops& loops,
            const void* user) {
  ETX_CHECK(context, RealBool::contains(in.scalar_type()), NotSupported,
            "the operator does not support the dtype of self");
  ETX_CHECK(context, kind_of(out.scalar_type()) >= kind_of(in.scalar_type()), InvalidArgument,
            "out must have a dtype that holds that of self");
  Map m;
  m.out_as = wide(out.scalar_type());
  m.loop = loops[m.out_as];
  m.user = user;
  const Operand operands[] = {Operand(in, m.out_as)};
  return map(context, operands, out, m);
}

/// Bounds in each type of computation; an absent one is beyond every number.
struct Clamp {
  float low_float = -std::numeric_limits<float>::infinity();
  float high_float = std::numeric_limits<float>::infinity();
  double low_double = -std::numeric_limits<double>::infinity();
  double high_double = std::numeric_limits<double>::infinity();
  int64_t low_long = INT64_MIN;
  int64_t high_long = INT64_MAX;

  void set_low(const Scalar& v) {
    low_float = v.to<float>();
    low_double = v.to<double>();
    if (!v.is_floating()) low_long = v.to<int64_t>();
  }
  void set_high(const Scalar& v) {
    high_float = v.to<float>();
    high_double = v.to<double>();
    if (!v.is_floating()) high_long = v.to<int64_t>();
  }
  /// NaN is a bound that nothing keeps: every element becomes NaN.
  bool is_nan() const { return low_double != low_double || high_double != high_double; }

  /// True where a bound is a number of T or beyond all of them.
  template <typename T>
  bool fits() const {
    using Limits = std::numeric_limits<T>;
    return low_long <= Limits::max() && high_long >= Limits::min();
  }
  bool fits(ScalarType dtype) const {
    switch (dtype) {
      case ScalarType::Int: return fits<int32_t>();
      case ScalarType::Short: return fits<int16_t>();
      case ScalarType::Char: return fits<int8_t>();
      default: return fits<uint8_t>();
    }
  }
};

template <typename T>
void clamp_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  const Clamp& c = *static_cast<const Clamp*>(user);
  T low, high;
  if constexpr (std::is_same_v<T, double>) {
    low = c.low_double, high = c.high_double;
  } else {
    using Limits = std::numeric_limits<T>;
    low = static_cast<T>(maximum<int64_t>(c.low_long, Limits::min()));
    high = static_cast<T>(minimum<int64_t>(c.high_long, Limits::max()));
  }
  const T* const x = static_cast<const T*>(in[0]);
  T* const y = static_cast<T*>(out);
  if (low != low || high != high) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::numeric_limits<T>::quiet_NaN();
    return;
  }
  size_t i = 0;
  const size_t count = static_cast<size_t>(n);
  if constexpr (std::is_same_v<T, double>) i = isa().clamp_double(x, low, high, y, count);
  if constexpr (std::is_same_v<T, int64_t>) i = isa().clamp_long(x, low, high, y, count);
  if constexpr (std::is_same_v<T, int32_t>) i = isa().clamp_int(x, low, high, y, count);
  for (; i < count; ++i) {
    const T v = x[i] < low ? low : x[i];
    y[i] = v > high ? high : v;
  }
}

void fill_nan(float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::numeric_limits<float>::quiet_NaN();
}

void clamp_float_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  const Clamp& c = *static_cast<const Clamp*>(user);
  if (c.is_nan()) return fill_nan(static_cast<float*>(out), n);
  isa().clamp(static_cast<const float*>(in[0]), c.low_float, c.high_float, static_cast<float*>(out),
              static_cast<size_t>(n));
}
constexpr Loops kClamp = {&clamp_loop<int64_t>,
                          &clamp_float_loop,
                          &clamp_loop<double>,
                          {},
                          {},
                          false,
                          &clamp_loop<int32_t>,
                          &clamp_loop<int16_t>,
                          &clamp_loop<int8_t>,
                          &clamp_loop<uint8_t>};

Error clamp(Context& context, const Tensor& in, const Tensor& out, const Clamp& bounds) {
  Map m;
  m.out_as = out.scalar_type();
  m.loop = kClamp.narrow(m.out_as);
  if (m.loop == nullptr || in.scalar_type() != m.out_as || !bounds.fits(m.out_as)) {
    return apply(context, in, out, kClamp, &bounds);
  }
  m.user = &bounds;
  const Operand operands[] = {Operand(in, m.out_as)};
  return map(context, operands, out, m);
}

/// A bound of an integer dtype wraps as its elements do.
Scalar as_dtype(const Scalar& value, ScalarType dtype) {
  if (is_floating(dtype) || !is_castable(dtype)) return value;
  const Element element = cast(value, dtype);
  int64_t wrapped = 0;
  cast(element.bytes, dtype, 1, &wrapped, ScalarType::Long, 1);
  return Scalar(wrapped);
}

Error clamp_out(Context& context, const Tensor& self, std::optional<Scalar> min,
                std::optional<Scalar> max, Tensor& out) {
  ETX_CHECK(context, min.has_value() || max.has_value(), InvalidArgument,
            "one of min and max must be given");
  const bool floating = is_floating(out.scalar_type());
  ETX_CHECK(context, floating || !(min && min->is_floating()) || !(max && max->is_floating()),
            InvalidArgument, "out must have a floating dtype when a bound is floating");
  Clamp bounds;
  if (min.has_value()) bounds.set_low(as_dtype(*min, out.scalar_type()));
  if (max.has_value()) bounds.set_high(as_dtype(*max, out.scalar_type()));
  return clamp(context, self, out, bounds);
}

Error hardtanh_out(Context& context, const Tensor& self, Scalar min_val, Scalar max_val,
                   Tensor& out) {
  Clamp bounds;
  const bool integral = !is_floating(out.scalar_type());
  bounds.set_low(integral ? Scalar(min_val.to<int64_t>()) : min_val);
  bounds.set_high(integral ? Scalar(max_val.to<int64_t>()) : max_val);
  return clamp(context, self, out, bounds);
}

/// y = min(max(x, low), high); NaN where one of them is.
template <typename T>
void clamp_tensor_loop(const void*, const void* const* in, uint32_t scalars, void* out, int64_t n) {
  const int64_t steps[] = {scalars & 1u ? 0 : 1, scalars & 2u ? 0 : 1, scalars & 4u ? 0 : 1};
  const T* x = static_cast<const T*>(in[0]);
  const T* low = static_cast<const T*>(in[1]);
  const T* high = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = minimum(maximum(x[i * steps[0]], low[i * steps[1]]), high[i * steps[2]]);
  }
}
void clamp_tensor_float_loop(const void* user, const void* const* in, uint32_t scalars, void* out,
                             int64_t n) {
  if (kIsSmall || scalars != 0 || out == in[2]) {
    return clamp_tensor_loop<float>(user, in, scalars, out, n);
  }
  float* const y = static_cast<float*>(out);
  isa().maximum(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]), y,
                static_cast<size_t>(n));
  isa().minimum(y, static_cast<const float*>(in[2]), y, static_cast<size_t>(n));
}
constexpr Loops kClampTensor = {&clamp_tensor_loop<int64_t>, &clamp_tensor_float_loop,
                                &clamp_tensor_loop<double>};

Element lowest(ScalarType as) {
  return as == ScalarType::Long ? cast(Scalar(int64_t{INT64_MIN}), as)
                                : cast(Scalar(-std::numeric_limits<double>::infinity()), as);
}
Element highest(ScalarType as) {
  return as == ScalarType::Long ? cast(Scalar(int64_t{INT64_MAX}), as)
                                : cast(Scalar(std::numeric_limits<double>::infinity()), as);
}

Error clamp_tensor_out(Context& context, const Tensor& self, std::optional<Tensor> min,
                       std::optional<Tensor> max, Tensor& out) {
  ETX_CHECK(context, min.has_value() || max.has_value(), InvalidArgument,
            "one of min and max must be given");
  ETX_CHECK(context, RealBool::contains(self.scalar_type()), NotSupported,
            "the operator does not support the dtype of self");
  const Kind kind = kind_of(out.scalar_type());
  ETX_CHECK(context,
            kind >= kind_of(self.scalar_type()) &&
                (!min.has_value() || kind >= kind_of(min->scalar_type())) &&
                (!max.has_value() || kind >= kind_of(max->scalar_type())),
            InvalidArgument, "out must have a dtype that holds those of the inputs");
  Map m;
  m.out_as = wide(out.scalar_type());
  m.loop = kClampTensor[m.out_as];
  const Element low = lowest(m.out_as);
  const Element high = highest(m.out_as);
  const Operand operands[] = {
      Operand(self, out.scalar_type(), m.out_as),
      min.has_value() ? Operand(*min, out.scalar_type(), m.out_as) : Operand(low, m.out_as),
      max.has_value() ? Operand(*max, out.scalar_type(), m.out_as) : Operand(high, m.out_as),
  };
  return map(context, operands, out, m);
}

struct LeakyRelu {
  double slope;
  template <typename T>
  T operator()(T x) const {
    return x > 0 ? x : x * static_cast<T>(slope);
  }
};

Error leaky_relu_out(Context& context, const Tensor& self, Scalar negative_slope, Tensor& out) {
  const LeakyRelu f{negative_slope.to<double>()};
  return apply(context, self, out, kFunction<LeakyRelu>, &f);
}

struct Elu {
  double negative, positive, input_scale;
  template <typename T>
  T operator()(T x) const {
    return x > 0 ? x * static_cast<T>(positive)
                 : std::expm1(x * static_cast<T>(input_scale)) * static_cast<T>(negative);
  }
};

void elu_float_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  constexpr int64_t kBlock = 256;
  const Elu& f = *static_cast<const Elu*>(user);
  const auto positive = static_cast<float>(f.positive), negative = static_cast<float>(f.negative);
  const auto input_scale = static_cast<float>(f.input_scale);
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  float grown[kBlock];
  for (; n > 0; n -= kBlock, x += kBlock, y += kBlock) {
    const int64_t count = minimum(n, kBlock);
    isa().mul_scalar(x, input_scale, grown, static_cast<size_t>(count));
    isa().expm1(grown, grown, static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] * positive : grown[i] * negative;
  }
}
constexpr Loops kElu = {nullptr, &elu_float_loop, &function_loop<Elu, double>};

Error elu_out(Context& context, const Tensor& self, Scalar alpha, Scalar scale, Scalar input_scale,
              Tensor& out) {
  const Elu f{alpha.to<double>() * scale.to<double>(), scale.to<double>(),
              input_scale.to<double>()};
  return apply(context, self, out, kElu, &f);
}

struct Logit {
  double eps;  ///< Negative: no clamping.
  template <typename T>
  T odds(T x) const {
    const T low = static_cast<T>(eps);
    const T p = eps < 0 ? x : x < low ? low : x > 1 - low ? 1 - low : x;
    return p / (1 - p);
  }
  template <typename T>
  T operator()(T x) const {
    return std::log(odds(x));
  }
};

void logit_float_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  const Logit f = *static_cast<const Logit*>(user);
  const float* const x = static_cast<const float*>(in[0]);
  float* const y = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = f.odds(x[i]);
  isa().log(y, y, static_cast<size_t>(n));
}
constexpr Loops kLogit = {nullptr, kIsSmall ? &function_loop<Logit, float> : &logit_float_loop,
                          &function_loop<Logit, double>};

Error logit_out(Context& context, const Tensor& self, std::optional<double> eps, Tensor& out) {
  ETX_CHECK(context, is_floating(out.scalar_type()), InvalidArgument,
            "out must have a floating dtype");
  const Logit f{eps.value_or(-1.0)};
  return apply(context, self, out, kLogit, &f);
}

struct Polynomial {
  const double* coefficients;
  size_t terms;
};

/// What is left of whole vectors is computed as they are, so that no element depends on its place.
void polynomial_loop(const void* user, const void* const* in, uint32_t, void* out, int64_t n) {
  constexpr size_t kWidth = 64;
  const Polynomial& p = *static_cast<const Polynomial*>(user);
  const double* const x = static_cast<const double*>(in[0]);
  double* const y = static_cast<double*>(out);
  const auto count = static_cast<size_t>(n);
  const size_t done = isa().polynomial_double(x, y, count, p.coefficients, p.terms);
  if (done == count) return;
  double last[kWidth] = {};
  const size_t rest = (count - done) * sizeof(double);
  std::memcpy(last, x + done, rest);
  isa().polynomial_double(last, last, kWidth, p.coefficients, p.terms);
  std::memcpy(y + done, last, rest);
}

Error polynomial_out(Context& context, const Tensor& self, DoubleList coefficients, Tensor& out) {
  ETX_CHECK(context,
            self.scalar_type() == ScalarType::Double && out.scalar_type() == ScalarType::Double,
            NotSupported, "self and out must be float64");
  ETX_CHECK(context, coefficients.size() != 0, InvalidArgument,
            "coefficients must have one number at least");
  const Polynomial polynomial{coefficients.data(), coefficients.size()};
  Map m;
  m.loop = &polynomial_loop;
  m.out_as = ScalarType::Double;
  m.user = &polynomial;
  const Operand operands[] = {Operand(self, m.out_as)};
  return map(context, operands, out, m);
}

constexpr uint64_t kReal = Real::bits | kInPlace;
constexpr uint64_t kFloating = Floating::bits | kInPlace;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::clamp.out", clamp_out, kReal),
    ETX_KERNEL("aten::clamp.Tensor_out", clamp_tensor_out, kReal),
    ETX_KERNEL("aten::hardtanh.out", hardtanh_out, kReal),
    ETX_KERNEL("aten::leaky_relu.out", leaky_relu_out, kFloating),
    ETX_KERNEL("aten::elu.out", elu_out, kFloating),
    ETX_KERNEL("aten::logit.out", logit_out, RealBool::bits | kInPlace),
    ETX_KERNEL("etx::polynomial.out", polynomial_out, dtype_bit(ScalarType::Double) | kInPlace),
};

}  // namespace

ETX_KERNEL_TABLE(activation_kernels, kRows);

}  // namespace etx::portable
