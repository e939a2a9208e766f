// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_MAP_H_
#define ETX_PORTABLE_MAP_H_

#include <cstdint>

#include <etx/kernel.h>

#include "core/cast.h"

namespace etx::portable {

/// An input of an elementwise operator and the dtype in which its loop wants to see it.
struct Operand {
  Operand(const Tensor& tensor, ScalarType seen_as) : Operand(tensor, seen_as, seen_as) {}
  /// The elements are converted to dtype `first` before they are seen in `seen_as`.
  Operand(const Tensor& tensor, ScalarType first, ScalarType seen_as)
      : impl(tensor.impl()),
        data(tensor.const_data_ptr()),
        dtype(tensor.scalar_type()),
        through(first == tensor.scalar_type() ? seen_as : first),
        as(seen_as) {}
  /// One element of dtype `seen_as`, repeated.
  Operand(const Element& element, ScalarType seen_as)
      : data(element.bytes), dtype(seen_as), through(seen_as), as(seen_as) {}

  bool needs_conversion() const { return dtype != as || through != as; }

  etx_tensor* impl = nullptr;  ///< Null: `data` is one element.
  const void* data;
  ScalarType dtype;
  ScalarType through;
  ScalarType as;
};

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
