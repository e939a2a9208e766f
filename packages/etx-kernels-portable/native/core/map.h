// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_MAP_H_
#define ETX_PORTABLE_MAP_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/operand.h"

namespace etx::portable {

constexpr int kMaxOperands = 3;

/// Computes `n` consecutive elements of `out`. `in[k]` points at `n` elements, or at one that all
/// share where bit k of `scalars` is set.
using Loop = void (*)(const void* user, const void* const* in, uint32_t scalars, void* out,
                      int64_t n);

/// What an elementwise operator does once the shapes are known.
struct Map {
  Loop loop = nullptr;
  ScalarType out_as = ScalarType::Float;  ///< What the loop writes; converted to out's dtype.
  const void* user = nullptr;
  int64_t grain = 32768;  ///< Elements worth a thread.
};

/// out = f(in…): broadcasts, resizes `out`, and runs the loop over contiguous pieces, converting
/// where a dtype differs. Layouts may differ. Errors: InvalidArgument for shapes that do not
/// broadcast or do not fit `out`, NotSupported for a missing loop or dtypes without conversion.
Error map(Context& context, Span<const Operand> in, const Tensor& out, const Map& map);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_MAP_H_
