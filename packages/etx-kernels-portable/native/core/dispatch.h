// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_DISPATCH_H_
#define ETX_PORTABLE_DISPATCH_H_

#include <cstdint>
#include <type_traits>

#include <etx/dtype.h>
#include <etx/error.h>
#include <etx/kernel.h>

#include "selection.h"

namespace etx::portable {

/// A dtype as a type: `typename decltype(tag)::type` inside a dispatched function.
template <ScalarType S, typename T>
struct DtypeTag {
  static constexpr ScalarType value = S;
  using type = T;
};

/// A list of dtypes; `bits` is the third argument of ETX_KERNEL.
template <typename... Tags>
struct DtypeList {
  static constexpr uint64_t bits = (uint64_t{0} | ... | dtype_bit(Tags::value));
  static constexpr bool contains(ScalarType type) { return ((type == Tags::value) || ...); }
};

template <typename... Lists>
struct JoinLists;
template <typename... A>
struct JoinLists<DtypeList<A...>> {
  using type = DtypeList<A...>;
};
template <typename... A, typename... B, typename... Rest>
struct JoinLists<DtypeList<A...>, DtypeList<B...>, Rest...> {
  using type = typename JoinLists<DtypeList<A..., B...>, Rest...>::type;
};
template <typename... Lists>
using Join = typename JoinLists<Lists...>::type;

using Float32 = DtypeList<DtypeTag<ScalarType::Float, float>>;
using Float64 = DtypeList<DtypeTag<ScalarType::Double, double>>;
using Int32 = DtypeList<DtypeTag<ScalarType::Int, int32_t>>;
using Int64 = DtypeList<DtypeTag<ScalarType::Long, int64_t>>;
using BoolOnly = DtypeList<DtypeTag<ScalarType::Bool, bool>>;

/// float16 and bfloat16.
using ReducedFloating =
    DtypeList<DtypeTag<ScalarType::Half, Half>, DtypeTag<ScalarType::BFloat16, BFloat16>>;
/// float32, float64, float16, bfloat16.
using Floating = Join<Float32, Float64, ReducedFloating>;
/// int64, int32, int16, int8, uint8.
using Integral =
    Join<Int64, Int32,
         DtypeList<DtypeTag<ScalarType::Short, int16_t>, DtypeTag<ScalarType::Char, int8_t>,
                   DtypeTag<ScalarType::Byte, uint8_t>>>;
using IntegralBool = Join<Integral, BoolOnly>;
/// Every floating and integral dtype without bool.
using Real = Join<Floating, Integral>;
using RealBool = Join<Real, BoolOnly>;
/// int32 and int64.
using Indices = Join<Int64, Int32>;

/// The type in which values of T are computed: float for Half and BFloat16.
template <typename T>
using Compute =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <typename Tag, bool (*kept)(ScalarType), typename F>
bool call_with(ScalarType type, const F& f, Error& error) {
  if constexpr (kept(Tag::value)) {
    if (type == Tag::value) error = f(Tag{});
  }
  return type == Tag::value;
}

/// Calls `f(tag)` with the tag of `type`; NotSupported when `type` is not listed, or not built.
template <bool (*kept)(ScalarType) = is_built, typename... Tags, typename F>
Error dispatch(DtypeList<Tags...>, ScalarType type, const F& f) {
  Error error = Error::NotSupported;
  (void)(call_with<Tags, kept>(type, f, error) || ...);
  return error;
}

/// The same with a reason.
template <bool (*kept)(ScalarType) = is_built, typename... Tags, typename F>
Error dispatch(Context& context, DtypeList<Tags...> list, ScalarType type, const F& f) {
  ETX_CHECK(context, list.contains(type) && kept(type), NotSupported,
            "the operator does not support the dtype of this tensor");
  return dispatch<kept>(list, type, f);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_DISPATCH_H_
