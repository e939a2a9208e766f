// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_VALUE_H_
#define ETX_VALUE_H_

#include <string_view>
#include <type_traits>
#include <utility>

#include <etx/abi.h>
#include <etx/span.h>
#include <etx/tensor.h>

/// Where the processor computes with doubles.
#if UINTPTR_MAX > UINT32_MAX || (defined(__ARM_FP) && (__ARM_FP & 8) != 0)
#define ETX_HAS_DOUBLES 1
#endif

namespace etx {

namespace detail {

/// The nearest double. Without a call of a library for doubles, which a cast would be where the
/// processor does not convert 64 bits, so that firmware without doubles does not link one.
inline double to_double(int64_t value) {
#if UINTPTR_MAX > UINT32_MAX
  return static_cast<double>(value);
#elif defined(ETX_HAS_DOUBLES)
  const auto bits = static_cast<uint64_t>(value);
  return static_cast<int32_t>(bits >> 32) * 4294967296.0 + static_cast<uint32_t>(bits);
#else
  if (value == 0) return 0;
  uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  uint64_t exponent = 1023 + 63;
  for (; size >> 63 == 0; size <<= 1) --exponent;
  const auto rest = static_cast<uint32_t>(size) & 2047u;
  uint64_t bits = (exponent - 1) << 52;
  bits += size >> 11;
  if (rest > 1024 || (rest == 1024 && (bits & 1) != 0)) ++bits;
  if (value < 0) bits |= uint64_t{1} << 63;
  double number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
#endif
}

/// The nearest float, in the same way; 0 for what is smaller than normal floats.
inline float to_float(double number) {
#if defined(ETX_HAS_DOUBLES)
  return static_cast<float>(number);
#else
  constexpr uint64_t kOne = uint64_t{1} << 52, kLeast = (1023 - 126) * kOne;
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  const uint64_t size = bits << 1 >> 1;
  uint32_t single = 0;
  if (size > 2047 * kOne) {
    single = 0x7fc00000u;
  } else if (size >= (1023 + 128) * kOne) {
    single = 0x7f800000u;
  } else if (size >= kLeast) {
    const uint64_t moved = size - (1023 - 127) * kOne;
    const uint32_t rest = static_cast<uint32_t>(moved) & 0x1fffffffu;
    single = static_cast<uint32_t>(moved >> 29);
    if (rest > 0x10000000u || (rest == 0x10000000u && (single & 1) != 0)) ++single;
  }
  single |= static_cast<uint32_t>(bits >> 63) << 31;
  float result;
  std::memcpy(&result, &single, sizeof(result));
  return result;
#endif
}

}  // namespace detail

/// What a value slot holds. Numbers are part of the format's contract.
enum class Tag : uint32_t {
  None = ETX_TAG_NONE,
  Tensor = ETX_TAG_TENSOR,
  String = ETX_TAG_STRING,
  Double = ETX_TAG_DOUBLE,
  Int = ETX_TAG_INT,
  Bool = ETX_TAG_BOOL,
  ListBool = ETX_TAG_LIST_BOOL,
  ListDouble = ETX_TAG_LIST_DOUBLE,
  ListInt = ETX_TAG_LIST_INT,
  ListTensor = ETX_TAG_LIST_TENSOR,
  ListScalar = ETX_TAG_LIST_SCALAR,
  ListOptionalTensor = ETX_TAG_LIST_OPTIONAL_TENSOR,
};

/// A number of a kind known at run time: ATen's `Scalar` argument type.
class Scalar {
 public:
  Scalar(int64_t v) : tag_(Tag::Int) { value_.i = v; }
  Scalar(double v) : tag_(Tag::Double) { value_.d = v; }
  Scalar(bool v) : tag_(Tag::Bool) { value_.b = v; }

  Tag tag() const { return tag_; }
  bool is_floating() const { return tag_ == Tag::Double; }
  bool is_integral() const { return tag_ == Tag::Int; }
  bool is_bool() const { return tag_ == Tag::Bool; }

  /// The number converted as static_cast does; to bool: not equal to zero. From floating to
  /// integers: the nearest that int64 holds, NaN is 0.
  template <typename T>
  T to() const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (tag_ == Tag::Double) return static_cast<T>(nearest(value_.d));
    }
    if (tag_ == Tag::Double) return static_cast<T>(value_.d);
    if (tag_ == Tag::Int) return static_cast<T>(value_.i);
    return static_cast<T>(value_.b);
  }

 private:
  static int64_t nearest(double number) {
    constexpr double kLimit = 9223372036854775808.0;
    if (number >= -kLimit && number < kLimit) return static_cast<int64_t>(number);
    return number > 0 ? INT64_MAX : number < 0 ? INT64_MIN : 0;
  }

  union {
    int64_t i;
    double d;
    bool b;
  } value_;
  Tag tag_;
};

/// A list of tensors, read from its slots at each access.
class TensorList {
 public:
  TensorList(const etx_value* const* slots, size_t size) : slots_(slots), size_(size) {}
  size_t size() const { return size_; }
  Tensor operator[](size_t i) const { return Tensor(slots_[i]->payload.as_tensor); }

 private:
  const etx_value* const* slots_;
  size_t size_;
};

/// A list of tensors some of which may be None.
class OptionalTensorList {
 public:
  OptionalTensorList(const etx_value* const* slots, size_t size) : slots_(slots), size_(size) {}
  size_t size() const { return size_; }
  bool has_value(size_t i) const {
    return slots_[i] != nullptr && slots_[i]->tag == ETX_TAG_TENSOR;
  }
  /// Only where `has_value(i)`.
  Tensor operator[](size_t i) const { return Tensor(slots_[i]->payload.as_tensor); }

 private:
  const etx_value* const* slots_;
  size_t size_;
};

using IntList = Span<const int64_t>;
using DoubleList = Span<const double>;
using BoolList = Span<const bool>;

/// A slot of a method's register file. The accessors `to_*` do not check: ask `tag()` first.
class EValue : public etx_value {
 public:
  EValue() : etx_value{} {}
  EValue(int64_t v) : EValue() { set(v); }
  EValue(double v) : EValue() { set(v); }
  EValue(bool v) : EValue() { set(v); }
  explicit EValue(TensorImpl* v) : EValue() {
    payload.as_tensor = v;
    etx_value::tag = ETX_TAG_TENSOR;
  }
  /// What the tensor refers to must outlive the value.
  EValue(const Tensor& v) : EValue(v.impl()) {}
  /// From a smart pointer to a Tensor, which must not be null and must outlive the value.
  template <typename T, typename = std::enable_if_t<std::is_same_v<
                            std::decay_t<decltype(*std::declval<const T&>())>, Tensor>>>
  EValue(const T& pointer) : EValue(pointer->impl()) {}

  Tag tag() const { return static_cast<Tag>(etx_value::tag); }
  bool is_none() const { return tag() == Tag::None; }
  bool is_tensor() const { return tag() == Tag::Tensor; }
  bool is_int() const { return tag() == Tag::Int; }
  bool is_double() const { return tag() == Tag::Double; }
  bool is_bool() const { return tag() == Tag::Bool; }
  bool is_string() const { return tag() == Tag::String; }
  bool is_scalar() const { return is_int() || is_double() || is_bool(); }

  Tensor to_tensor() const { return Tensor(payload.as_tensor); }
  int64_t to_int() const { return payload.as_int; }
  /// A Double, or an Int converted.
  double to_double() const {
    return tag() == Tag::Int ? detail::to_double(payload.as_int) : payload.as_double;
  }
  bool to_bool() const { return payload.as_bool; }
  std::string_view to_string_view() const { return {payload.as_string, count}; }
  Scalar to_scalar() const {
    if (tag() == Tag::Double) return Scalar(payload.as_double);
    if (tag() == Tag::Int) return Scalar(payload.as_int);
    return Scalar(payload.as_bool);
  }
  /// Reads the boxed items again when the list holds run-time integers.
  IntList to_int_list() const {
    etx_int_list* list = payload.as_int_list;
    if (list->boxed != nullptr) {
      for (uint32_t i = 0; i < count; ++i) list->items[i] = list->boxed[i]->payload.as_int;
    }
    return {list->items, count};
  }
  DoubleList to_double_list() const { return {payload.as_double_list, count}; }
  BoolList to_bool_list() const { return {payload.as_bool_list, count}; }
  TensorList to_tensor_list() const { return {payload.as_tensor_list, count}; }
  OptionalTensorList to_optional_tensor_list() const { return {payload.as_tensor_list, count}; }

  /// ExecuTorch's spellings.
  bool isNone() const { return is_none(); }
  bool isTensor() const { return is_tensor(); }
  bool isInt() const { return is_int(); }
  bool isDouble() const { return is_double(); }
  bool isBool() const { return is_bool(); }
  bool isString() const { return is_string(); }
  bool isScalar() const { return is_scalar(); }
  bool isIntList() const { return tag() == Tag::ListInt; }
  bool isDoubleList() const { return tag() == Tag::ListDouble; }
  bool isBoolList() const { return tag() == Tag::ListBool; }
  bool isTensorList() const { return tag() == Tag::ListTensor; }
  Tensor toTensor() const { return to_tensor(); }
  int64_t toInt() const { return to_int(); }
  double toDouble() const { return to_double(); }
  bool toBool() const { return to_bool(); }
  std::string_view toString() const { return to_string_view(); }
  Scalar toScalar() const { return to_scalar(); }
  IntList toIntList() const { return to_int_list(); }
  DoubleList toDoubleList() const { return to_double_list(); }
  BoolList toBoolList() const { return to_bool_list(); }
  TensorList toTensorList() const { return to_tensor_list(); }

  void set(int64_t v) {
    payload.as_int = v;
    etx_value::tag = ETX_TAG_INT;
  }
  void set(double v) {
    payload.as_double = v;
    etx_value::tag = ETX_TAG_DOUBLE;
  }
  void set(bool v) {
    payload.as_bool = v;
    etx_value::tag = ETX_TAG_BOOL;
  }
};

static_assert(sizeof(EValue) == sizeof(etx_value), "EValue adds no members to etx_value");

}  // namespace etx

#endif  // ETX_VALUE_H_
