// SPDX-License-Identifier: BSD-3-Clause
#include "core/cast.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "core/element.h"
#include "core/min_max.h"
#include "isa/isa.h"

namespace etx::portable {
namespace {

using Unsigned =
    DtypeList<DtypeTag<ScalarType::UInt16, uint16_t>, DtypeTag<ScalarType::UInt32, uint32_t>,
              DtypeTag<ScalarType::UInt64, uint64_t>>;
using Castable = Join<RealBool, Unsigned>;
/// float16 and bfloat16 are converted by way of float32 only.
using Whole = Join<Float32, Float64, IntegralBool, Unsigned>;
template <typename Wide>
using Other = std::conditional_t<std::is_same_v<Wide, float>, Castable, Whole>;

constexpr bool is_reduced(ScalarType type) {
  return (is_cast(ScalarType::Half) && type == ScalarType::Half) ||
         (is_cast(ScalarType::BFloat16) && type == ScalarType::BFloat16);
}

constexpr int64_t kBlock = 256;

/// Numbers out of range become the smallest integer, as x86 does it.
template <typename Integer, typename Floating>
Integer truncate(Floating v) {
  constexpr Floating kLimit =
      sizeof(Integer) == 8 ? Floating(9223372036854775808.0) : Floating(2147483648.0);
  using Signed = std::make_signed_t<Integer>;
  const bool fits = v >= -kLimit && v < kLimit;
  return static_cast<Integer>(fits ? static_cast<Signed>(v) : std::numeric_limits<Signed>::min());
}

template <typename To, typename From>
To convert(From raw) {
  const auto v = static_cast<Compute<From>>(raw);
  using V = Compute<From>;
  if constexpr (std::is_same_v<To, bool>) {
    return v != V(0);
  } else if constexpr (std::is_floating_point_v<V> && std::is_integral_v<To>) {
    using Middle =
        std::conditional_t<(sizeof(To) < 4 || std::is_same_v<To, int32_t>), int32_t, int64_t>;
    return static_cast<To>(truncate<Middle>(v));
  } else if constexpr (!std::is_same_v<Compute<To>, To>) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

using CastLoop = void (*)(const void* src, int64_t stride, void* dst, int64_t n);

template <typename From, typename To>
void cast_loop(const void* src, int64_t stride, void* dst, int64_t n) {
  const From* from = static_cast<const From*>(src);
  To* to = static_cast<To*>(dst);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(load_element(from + i));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(load_element(from + i * stride));
  }
}

template <typename Wide>
CastLoop load_loop(ScalarType from) {
  CastLoop loop = nullptr;
  (void)dispatch<is_cast>(Other<Wide>{}, from, [&](auto tag) {
    loop = cast_loop<typename decltype(tag)::type, Wide>;
    return Error::Ok;
  });
  return loop;
}

template <typename Wide>
CastLoop store_loop(ScalarType to) {
  CastLoop loop = nullptr;
  (void)dispatch<is_cast>(Other<Wide>{}, to, [&](auto tag) {
    loop = cast_loop<Wide, typename decltype(tag)::type>;
    return Error::Ok;
  });
  return loop;
}

using Bytes = DtypeList<DtypeTag<ScalarType::Char, int8_t>, DtypeTag<ScalarType::Byte, uint8_t>>;

/// The loop of bytes from or to int16; null for others.
CastLoop byte_loop(ScalarType from, ScalarType to) {
  CastLoop loop = nullptr;
  const bool loads = to == ScalarType::Short;
  (void)dispatch<is_cast>(Bytes{}, loads ? from : to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (loads) loop = cast_loop<T, int16_t>;
    if (from == ScalarType::Short) loop = cast_loop<int16_t, T>;
    return Error::Ok;
  });
  return loop;
}

/// The loop of a pair of which one side is Long, Float or Double; null for others.
CastLoop direct_loop(ScalarType from, ScalarType to) {
  switch (to) {
    case ScalarType::Long: return load_loop<int64_t>(from);
    case ScalarType::Float: return load_loop<float>(from);
    case ScalarType::Double: return load_loop<double>(from);
    default: break;
  }
  switch (from) {
    case ScalarType::Long: return store_loop<int64_t>(to);
    case ScalarType::Float: return store_loop<float>(to);
    case ScalarType::Double: return store_loop<double>(to);
    default: return kIsSmall ? nullptr : byte_loop(from, to);
  }
}

/// float16 and bfloat16 that lie next to each other, from and to float32; false for other pairs.
bool cast_halves(const void* src, ScalarType from, void* dst, ScalarType to, int64_t n) {
  const size_t count = static_cast<size_t>(n);
  const auto loops = [&](ScalarType half, auto widen, auto narrow) {
    if (from == half && to == ScalarType::Float) {
      widen(static_cast<const uint16_t*>(src), static_cast<float*>(dst), count);
    } else if (from == ScalarType::Float && to == half) {
      narrow(static_cast<const float*>(src), static_cast<uint16_t*>(dst), count);
    } else {
      return false;
    }
    return true;
  };
  if constexpr (is_cast(ScalarType::Half)) {
    if (loops(ScalarType::Half, isa().from_half, isa().to_half)) return true;
  }
  if constexpr (is_cast(ScalarType::BFloat16)) {
    return loops(ScalarType::BFloat16, isa().from_bfloat16, isa().to_bfloat16);
  }
  return false;
}

template <typename Bits>
void gather(const void* src, int64_t stride, void* dst, int64_t n) {
  const Bits* from = static_cast<const Bits*>(src);
  Bits* to = static_cast<Bits*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

void copy_strided(const void* src, int64_t stride, void* dst, int64_t n, size_t size) {
  if (stride == 1 || n <= 1) {
    std::memmove(dst, src, static_cast<size_t>(n) * size);
  } else if (size == 8) {
    gather<uint64_t>(src, stride, dst, n);
  } else if (size == 4) {
    gather<uint32_t>(src, stride, dst, n);
  } else if (size == 2) {
    gather<uint16_t>(src, stride, dst, n);
  } else {
    gather<uint8_t>(src, stride, dst, n);
  }
}

}  // namespace

void cast(const void* src, ScalarType from, int64_t stride, void* dst, ScalarType to, int64_t n) {
  if (n == 0) return;
  if (from == to) return copy_strided(src, stride, dst, n, element_size(to));
  if (stride == 1 && cast_halves(src, from, dst, to, n)) return;
  const bool reduced = is_reduced(from) || is_reduced(to);
  if (reduced && from != ScalarType::Float && to != ScalarType::Float) {
    return cast_through(src, from, stride, ScalarType::Float, dst, to, n);
  }
  if (const CastLoop loop = direct_loop(from, to)) return loop(src, stride, dst, n);
  const bool beyond_long = from == ScalarType::UInt64 && is_floating(to);
  const ScalarType middle = beyond_long ? ScalarType::Float : wide(from);
  const CastLoop load = direct_loop(from, middle);
  const CastLoop store = direct_loop(middle, to);
  if (load == nullptr || store == nullptr) return;
  const int64_t src_step = stride * static_cast<int64_t>(element_size(from));
  const int64_t dst_step = static_cast<int64_t>(element_size(to));
  alignas(64) unsigned char block[kBlock * 8];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = min(n - i, kBlock);
    load(static_cast<const char*>(src) + i * src_step, stride, block, count);
    store(block, 1, static_cast<char*>(dst) + i * dst_step, count);
  }
}

void cast_through(const void* src, ScalarType from, int64_t stride, ScalarType through, void* dst,
                  ScalarType to, int64_t n) {
  if (through == from || through == to) return cast(src, from, stride, dst, to, n);
  const int64_t src_step = stride * static_cast<int64_t>(element_size(from));
  const int64_t dst_step = static_cast<int64_t>(element_size(to));
  alignas(64) unsigned char block[kBlock * 8];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = min(n - i, kBlock);
    cast(static_cast<const char*>(src) + i * src_step, from, stride, block, through, count);
    cast(block, through, 1, static_cast<char*>(dst) + i * dst_step, to, count);
  }
}

Element cast(Scalar value, ScalarType to) {
  Element element;
  if (value.is_floating()) {
    const double number = value.to<double>();
    cast(&number, ScalarType::Double, 1, element.bytes, to, 1);
  } else {
    const int64_t number = value.to<int64_t>();
    cast(&number, ScalarType::Long, 1, element.bytes, to, 1);
  }
  return element;
}

}  // namespace etx::portable
