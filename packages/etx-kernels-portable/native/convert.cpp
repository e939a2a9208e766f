// SPDX-License-Identifier: BSD-3-Clause
#include "convert.h"

#include <cstring>

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 256;

/// double to int64 as x86 does it: what does not fit becomes the smallest number.
int64_t truncate(double v) {
  const bool fits = v >= -9223372036854775808.0 && v < 9223372036854775808.0;
  return fits ? static_cast<int64_t>(v) : INT64_MIN;
}

template <typename Middle, typename From>
void load(Middle* middle, const void* src, int64_t count) {
  const From* from = static_cast<const From*>(src);
  for (int64_t i = 0; i < count; ++i) middle[i] = static_cast<Middle>(from[i]);
}

template <typename To>
struct Store {
  static To of(int64_t v) { return static_cast<To>(v); }
  static To of(double v) {
    if constexpr (std::is_floating_point_v<To>) return static_cast<To>(v);
    return static_cast<To>(truncate(v));
  }
};
template <>
struct Store<bool> {
  static bool of(int64_t v) { return v != 0; }
  static bool of(double v) { return v != 0; }
};
template <typename To>
struct StoreSmall {
  static To of(int64_t v) { return To(static_cast<float>(v)); }
  static To of(double v) { return To(static_cast<float>(v)); }
};
template <>
struct Store<Half> : StoreSmall<Half> {};
template <>
struct Store<BFloat16> : StoreSmall<BFloat16> {};

template <typename To, typename Middle>
void store(void* dst, const Middle* middle, int64_t count) {
  To* to = static_cast<To*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = Store<To>::of(middle[i]);
}

template <typename Middle>
void load_any(ScalarType from, Middle* middle, const void* src, int64_t count) {
  switch (from) {
    case ScalarType::Byte: return load<Middle, uint8_t>(middle, src, count);
    case ScalarType::Char: return load<Middle, int8_t>(middle, src, count);
    case ScalarType::Short: return load<Middle, int16_t>(middle, src, count);
    case ScalarType::Int: return load<Middle, int32_t>(middle, src, count);
    case ScalarType::Long: return load<Middle, int64_t>(middle, src, count);
    case ScalarType::UInt16: return load<Middle, uint16_t>(middle, src, count);
    case ScalarType::UInt32: return load<Middle, uint32_t>(middle, src, count);
    case ScalarType::UInt64: return load<Middle, uint64_t>(middle, src, count);
    case ScalarType::Bool: return load<Middle, uint8_t>(middle, src, count);
    default: break;
  }
  if constexpr (std::is_same_v<Middle, double>) {
    switch (from) {
      case ScalarType::Half: return load<Middle, Half>(middle, src, count);
      case ScalarType::BFloat16: return load<Middle, BFloat16>(middle, src, count);
      case ScalarType::Float: return load<Middle, float>(middle, src, count);
      case ScalarType::Double: return load<Middle, double>(middle, src, count);
      default: break;
    }
  }
}

template <typename Middle>
void store_any(ScalarType to, void* dst, const Middle* middle, int64_t count) {
  switch (to) {
    case ScalarType::Byte: return store<uint8_t>(dst, middle, count);
    case ScalarType::Char: return store<int8_t>(dst, middle, count);
    case ScalarType::Short: return store<int16_t>(dst, middle, count);
    case ScalarType::Int: return store<int32_t>(dst, middle, count);
    case ScalarType::Long: return store<int64_t>(dst, middle, count);
    case ScalarType::UInt16: return store<uint16_t>(dst, middle, count);
    case ScalarType::UInt32: return store<uint32_t>(dst, middle, count);
    case ScalarType::UInt64: return store<uint64_t>(dst, middle, count);
    case ScalarType::Bool: return store<bool>(dst, middle, count);
    case ScalarType::Half: return store<Half>(dst, middle, count);
    case ScalarType::BFloat16: return store<BFloat16>(dst, middle, count);
    case ScalarType::Float: return store<float>(dst, middle, count);
    case ScalarType::Double: return store<double>(dst, middle, count);
    default: break;
  }
}

template <typename Middle>
void convert_through(void* dst, ScalarType to, const void* src, ScalarType from, int64_t count) {
  Middle middle[kBlock];
  char* d = static_cast<char*>(dst);
  const char* s = static_cast<const char*>(src);
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = count - i < kBlock ? count - i : kBlock;
    load_any(from, middle, s + i * static_cast<int64_t>(element_size(from)), n);
    store_any(to, d + i * static_cast<int64_t>(element_size(to)), middle, n);
  }
}

}  // namespace

void convert(void* dst, ScalarType to, const void* src, ScalarType from, int64_t count) {
  if (to == from) {
    std::memcpy(dst, src, static_cast<size_t>(count) * element_size(to));
  } else if (is_floating(from) || (from == ScalarType::UInt64 && is_floating(to))) {
    convert_through<double>(dst, to, src, from, count);
  } else {
    convert_through<int64_t>(dst, to, src, from, count);
  }
}

Error convert_to_temp(Context& context, const Tensor& tensor, ScalarType to, const void*& data) {
  const ScalarType from = tensor.scalar_type();
  ETX_CHECK(context, is_convertible(from) && is_convertible(to), NotSupported,
            "no conversion between these dtypes");
  const size_t size = element_size(to);
  char* temp = context.allocate_temp_array<char>(static_cast<size_t>(tensor.numel()) * size);
  ETX_CHECK(context, temp != nullptr, MemoryAllocationFailed,
            "no temporary memory to convert a tensor to out's dtype");
  const char* src = static_cast<const char*>(tensor.const_data_ptr());
  context.parallel_for(0, tensor.numel(), 16384, [&](int64_t begin, int64_t end) {
    convert(temp + begin * static_cast<int64_t>(size), to,
            src + begin * static_cast<int64_t>(element_size(from)), from, end - begin);
  });
  data = temp;
  return Error::Ok;
}

Error scalar_bytes(Context& context, const Scalar& value, ScalarType to, void* element) {
  if (to == ScalarType::ComplexFloat || to == ScalarType::ComplexDouble ||
      to == ScalarType::ComplexHalf) {
    const ScalarType part = to == ScalarType::ComplexFloat    ? ScalarType::Float
                            : to == ScalarType::ComplexDouble ? ScalarType::Double
                                                              : ScalarType::Half;
    std::memset(element, 0, element_size(to));
    return scalar_bytes(context, value, part, element);
  }
  ETX_CHECK(context, is_convertible(to), NotSupported, "no conversion of value to out's dtype");
  if (value.is_floating()) {
    const double middle = value.to<double>();
    convert(element, to, &middle, ScalarType::Double, 1);
  } else {
    const int64_t middle = value.to<int64_t>();
    convert(element, to, &middle, ScalarType::Long, 1);
  }
  return Error::Ok;
}

}  // namespace etx::portable
