// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ONE_LEVEL_H_
#define ETX_PORTABLE_ONE_LEVEL_H_

#include <cstdint>

namespace etx::portable {

#if defined(ETX_ONE_LEVEL)
/// A loop of the only level of a build: called by its symbol instead of through a table, so that a
/// linker leaves out the loops that nothing calls. The level's source defines all of them.
template <typename F, auto id>
struct OneLevel;
template <typename R, typename... A, auto id>
struct OneLevel<R (*)(A...), id> {
  static R call(A... arguments);
};

template <typename F>
using Pointer = F*;

/// A number of that level, defined by its source.
using LevelNumber = const int32_t&;
#else
using LevelNumber = int32_t;
#endif

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ONE_LEVEL_H_
