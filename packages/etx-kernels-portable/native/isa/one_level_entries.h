// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ONE_LEVEL_ENTRIES_H_
#define ETX_PORTABLE_ONE_LEVEL_ENTRIES_H_

#include "isa/one_level.h"

namespace etx::portable {
namespace {

template <auto id>
constexpr decltype(nullptr) kEntry = nullptr;

}  // namespace

template <typename R, typename... A, auto id>
R OneLevel<R (*)(A...), id>::call(A... arguments) {
  return kEntry<id>(arguments...);
}

}  // namespace etx::portable

/// Makes a function of this source what `OneLevel<type, id>` calls.
#define ETX_ENTRY(type, id, ...)           \
  namespace {                              \
  template <>                              \
  constexpr type kEntry<id> = __VA_ARGS__; \
  }                                        \
  template struct OneLevel<type, id>;

#endif  // ETX_PORTABLE_ONE_LEVEL_ENTRIES_H_
