// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_DTYPE_H_
#define ETX_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace etx {

/// Element types, numbered as in ATen and in the program format.
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Bits1x8 = 18,
  Bits2x4 = 19,
  Bits4x2 = 20,
  Bits8 = 21,
  Bits16 = 22,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Float8_e5m2fnuz = 25,
  Float8_e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

constexpr int kNumScalarTypes = 30;

/// True for the numbers 0 to 29.
constexpr bool is_valid(ScalarType type) {
  return static_cast<int>(type) >= 0 && static_cast<int>(type) < kNumScalarTypes;
}

/// Of the dtypes in order; not in the function, where compilers copy it for each call.
inline constexpr uint8_t kElementSizes[kNumScalarTypes] = {
    1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 4, 8};

/// Bytes of one element; 0 for invalid types.
constexpr size_t element_size(ScalarType type) {
  return is_valid(type) ? kElementSizes[static_cast<int>(type)] : 0;
}

/// NumPy's spelling ("float32", "int64", "bool", "bfloat16"…); "invalid" for other numbers.
constexpr const char* to_string(ScalarType type) {
  constexpr const char* kNames[kNumScalarTypes] = {"uint8",           "int8",
                                                   "int16",           "int32",
                                                   "int64",           "float16",
                                                   "float32",         "float64",
                                                   "complex32",       "complex64",
                                                   "complex128",      "bool",
                                                   "qint8",           "quint8",
                                                   "qint32",          "bfloat16",
                                                   "quint4x2",        "quint2x4",
                                                   "bits1x8",         "bits2x4",
                                                   "bits4x2",         "bits8",
                                                   "bits16",          "float8_e5m2",
                                                   "float8_e4m3fn",   "float8_e5m2fnuz",
                                                   "float8_e4m3fnuz", "uint16",
                                                   "uint32",          "uint64"};
  return is_valid(type) ? kNames[static_cast<int>(type)] : "invalid";
}

constexpr bool is_floating(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::Float || t == ScalarType::Double ||
         t == ScalarType::BFloat16;
}

constexpr bool is_integral(ScalarType t, bool include_bool) {
  return (static_cast<int>(t) >= 0 && static_cast<int>(t) <= 4) || t == ScalarType::UInt16 ||
         t == ScalarType::UInt32 || t == ScalarType::UInt64 ||
         (include_bool && t == ScalarType::Bool);
}

namespace detail {
template <typename To, typename From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// IEEE 754 binary16 to binary32; exact.
inline float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return bit_cast<float>(sign | 0x70000000u | rest);
  if (rest >= 0x00800000u) return bit_cast<float>(sign | (rest + 0x38000000u));
  const float value = static_cast<float>(h & 0x3ffu) * 5.9604644775390625e-8f;
  return bit_cast<float>(sign | bit_cast<uint32_t>(value));
}

/// binary32 to binary16, round to nearest even.
inline uint16_t float_to_half(float f) {
  const uint32_t bits = bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x47800000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    half = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline uint16_t float_to_bfloat16(float f) {
  const uint32_t bits = bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
}  // namespace detail

/// IEEE 754 binary16 storage; arithmetic happens in float through the implicit conversions.
struct Half {
  uint16_t bits;
  Half() = default;
  Half(float f) : bits(detail::float_to_half(f)) {}
  operator float() const { return detail::half_to_float(bits); }
};

/// The upper half of a binary32; arithmetic happens in float through the implicit conversions.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float f) : bits(detail::float_to_bfloat16(f)) {}
  operator float() const { return detail::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace etx

#endif  // ETX_DTYPE_H_
