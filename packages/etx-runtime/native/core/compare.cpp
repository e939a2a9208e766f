// SPDX-License-Identifier: BSD-3-Clause
#include <etx/compare.h>
#include <etx/tensor.h>

#include <cstring>

namespace etx {
namespace {

constexpr double kInfinity = __builtin_inf();
constexpr double kNan = __builtin_nan("");

enum class Kind { Signed, Unsigned, Bool, Real, Complex, Bytes };

Kind kind_of(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::QUInt8:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64: return Kind::Unsigned;
    case ScalarType::Char:
    case ScalarType::QInt8:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::QInt32:
    case ScalarType::Long: return Kind::Signed;
    case ScalarType::Bool: return Kind::Bool;
    case ScalarType::ComplexHalf:
    case ScalarType::ComplexFloat:
    case ScalarType::ComplexDouble: return Kind::Complex;
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::Float:
    case ScalarType::Double:
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e4m3fn:
    case ScalarType::Float8_e5m2fnuz:
    case ScalarType::Float8_e4m3fnuz: return Kind::Real;
    default: return Kind::Bytes;
  }
}

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Of a type without infinities: an exponent of all ones is one like the others.
double small_float(uint8_t bits, int mantissa, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << mantissa);
  const int power = (exponent == 0 ? 1 : exponent) - bias - mantissa;
  const float unit = detail::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
  const double value = static_cast<double>(unit) * whole;
  return (bits & 0x80) != 0 ? -value : value;
}

double real(ScalarType type, const void* from) {
  const auto byte = load<uint8_t>(from);
  switch (type) {
    case ScalarType::Half:
    case ScalarType::ComplexHalf: return load<Half>(from);
    case ScalarType::BFloat16: return load<BFloat16>(from);
    case ScalarType::Float:
    case ScalarType::ComplexFloat: return load<float>(from);
    case ScalarType::Float8_e5m2:
      return detail::half_to_float(static_cast<uint16_t>(static_cast<uint32_t>(byte) << 8));
    case ScalarType::Float8_e4m3fn: return (byte & 0x7f) == 0x7f ? kNan : small_float(byte, 3, 7);
    case ScalarType::Float8_e4m3fnuz: return byte == 0x80 ? kNan : small_float(byte, 3, 8);
    case ScalarType::Float8_e5m2fnuz: return byte == 0x80 ? kNan : small_float(byte, 2, 16);
    default: return load<double>(from);
  }
}

/// The bits of an integer, extended to 64 with its sign.
uint64_t integer(size_t width, bool is_signed, const void* from) {
  switch (width) {
    case 1: {
      const auto bits = load<uint8_t>(from);
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(bits)}) : bits;
    }
    case 2: {
      const auto bits = load<uint16_t>(from);
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(bits)}) : bits;
    }
    case 4: {
      const auto bits = load<uint32_t>(from);
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)}) : bits;
    }
    default: return load<uint64_t>(from);
  }
}

/// Rounded once, without a call of a library for 64 bits.
double to_double(uint64_t value) {
  return static_cast<uint32_t>(value >> 32) * 4294967296.0 + static_cast<uint32_t>(value);
}

bool is_nan(double number) { return number != number; }
bool is_finite(double number) { return number - number == 0; }
double magnitude(double number) { return number < 0 ? -number : number; }

/// |x + iy|, by Newton's method: the core needs no libm.
double magnitude(const double (&number)[2]) {
  const double x = magnitude(number[0]);
  const double y = magnitude(number[1]);
  if (x == kInfinity || y == kInfinity) return kInfinity;
  if (is_nan(x) || is_nan(y)) return kNan;
  const double large = x > y ? x : y;
  const double small = x > y ? y : x;
  if (small == 0) return large;
  const double ratio = small / large;
  const double square = 1 + ratio * ratio;
  double root = square;
  for (int i = 0; i < 6; ++i) root = (root + square / root) / 2;
  return large * root;
}

/// Compares the elements of one pair of tensors, one after the other.
class Judge {
 public:
  Judge(ScalarType type, Tolerance tolerance)
      : type_(type), kind_(kind_of(type)), width_(element_size(type)), tolerance_(tolerance) {
    verdict_.worst = -1;
  }

  void judge(const uint8_t* got, const uint8_t* expected, int64_t index) {
    switch (kind_) {
      case Kind::Bytes:
        if (std::memcmp(got, expected, width_) != 0 && verdict_.different++ == 0) {
          verdict_.worst = index;
        }
        return;
      case Kind::Bool: {
        const double x[2] = {*got != 0 ? 1.0 : 0.0};
        const double y[2] = {*expected != 0 ? 1.0 : 0.0};
        return note(x, y, magnitude(x[0] - y[0]), 0, index);
      }
      case Kind::Signed:
      case Kind::Unsigned: return judge_integers(got, expected, index);
      default: return judge_numbers(got, expected, index);
    }
  }

  Verdict verdict() {
    verdict_.passed = verdict_.different == 0;
    return verdict_;
  }

 private:
  void judge_integers(const uint8_t* got, const uint8_t* expected, int64_t index) {
    const bool is_signed = kind_ == Kind::Signed;
    const uint64_t x = integer(width_, is_signed, got);
    const uint64_t y = integer(width_, is_signed, expected);
    const bool less = is_signed ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    const auto number = [&](uint64_t bits) {
      return is_signed ? detail::to_double(static_cast<int64_t>(bits)) : to_double(bits);
    };
    const double a[2] = {number(x)};
    const double b[2] = {number(y)};
    note(a, b, to_double(less ? y - x : x - y), tolerance_.absolute, index);
  }

  void judge_numbers(const uint8_t* got, const uint8_t* expected, int64_t index) {
    const bool is_complex = kind_ == Kind::Complex;
    double x[2] = {real(type_, got)};
    double y[2] = {real(type_, expected)};
    if (is_complex) {
      x[1] = real(type_, got + width_ / 2);
      y[1] = real(type_, expected + width_ / 2);
    }
    const bool are_nan = (is_nan(x[0]) || is_nan(x[1])) && (is_nan(y[0]) || is_nan(y[1]));
    const double apart[2] = {x[0] - y[0], x[1] - y[1]};
    double difference = magnitude(apart);
    if (are_nan || (x[0] == y[0] && x[1] == y[1])) difference = 0;
    if (is_nan(difference)) difference = kInfinity;
    const double size = magnitude(y);
    const bool bounded = is_finite(y[0]) && is_finite(y[1]);
    note(x, y, difference, bounded ? tolerance_.absolute + tolerance_.relative * size : 0, index);
  }

  void note(const double (&got)[2], const double (&expected)[2], double difference, double allowed,
            int64_t index) {
    verdict_.has_numbers = true;
    if (!(difference <= allowed)) ++verdict_.different;
    const double size = magnitude(expected);
    double relative = difference;
    if (difference != 0) relative = is_finite(size) && size != 0 ? difference / size : kInfinity;
    if (relative > verdict_.max_relative) verdict_.max_relative = relative;
    if (verdict_.worst >= 0 && difference <= verdict_.max_absolute) return;
    verdict_.max_absolute = difference;
    verdict_.worst = index;
    std::memcpy(verdict_.got, got, sizeof(got));
    std::memcpy(verdict_.expected, expected, sizeof(expected));
  }

  ScalarType type_;
  Kind kind_;
  size_t width_;
  Tolerance tolerance_;
  Verdict verdict_{};
};

Verdict refused(const char* reason) {
  Verdict verdict{};
  verdict.reason = reason;
  verdict.worst = -1;
  return verdict;
}

/// `strides` has room for kMaxRank.
Elements elements_of(const TensorImpl& tensor, int64_t* strides) {
  for (size_t d = 0; d < tensor.rank; ++d) strides[d] = tensor.strides[d];
  return {tensor.data, static_cast<ScalarType>(tensor.dtype), {tensor.sizes, tensor.rank}, strides};
}

}  // namespace

Verdict compare(const Elements& got, const Elements& expected, Tolerance tolerance) {
  if (got.type != expected.type) return refused("the output has another dtype");
  const size_t rank = expected.sizes.size();
  bool is_same = got.sizes.size() == rank;
  int64_t numel = 1;
  for (size_t d = 0; is_same && d < rank; ++d) {
    is_same = got.sizes[d] == expected.sizes[d];
    numel *= expected.sizes[d];
  }
  if (!is_same) return refused("the output has another shape");
  if (numel != 0 && got.data == nullptr) return refused("the output has no memory");
  const auto* const x = static_cast<const uint8_t*>(got.data);
  const auto* const y = static_cast<const uint8_t*>(expected.data);
  const auto width = static_cast<int64_t>(element_size(expected.type));
  Judge judge(expected.type, tolerance);
  int32_t place[kMaxRank] = {};
  int64_t at = 0;
  int64_t expected_at = 0;
  for (int64_t i = 0; i < numel; ++i) {
    judge.judge(x + at * width, y + expected_at * width, i);
    for (size_t d = rank; d-- > 0;) {
      at += got.strides[d];
      expected_at += expected.strides[d];
      if (++place[d] < expected.sizes[d]) break;
      at -= got.strides[d] * expected.sizes[d];
      expected_at -= expected.strides[d] * expected.sizes[d];
      place[d] = 0;
    }
  }
  return judge.verdict();
}

Verdict compare(const EValue& got, const EValue& expected, Tolerance tolerance) {
  if (got.tag() != expected.tag()) return refused("the output is of another kind");
  if (got.is_tensor()) {
    int64_t strides[2][kMaxRank];
    return compare(elements_of(*got.payload.as_tensor, strides[0]),
                   elements_of(*expected.payload.as_tensor, strides[1]), tolerance);
  }
  Elements elements[2] = {};
  for (Elements& side : elements) {
    side.type = got.is_int()      ? ScalarType::Long
                : got.is_double() ? ScalarType::Double
                                  : ScalarType::Bool;
  }
  elements[0].data = &got.payload;
  elements[1].data = &expected.payload;
  return compare(elements[0], elements[1], tolerance);
}

}  // namespace etx
