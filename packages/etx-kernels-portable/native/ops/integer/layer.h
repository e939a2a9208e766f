// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LAYER_H_
#define ETX_PORTABLE_LAYER_H_

#include <etx/kernel.h>

#include "core/checked.h"
#include "ops/integer/columns.h"

namespace etx::portable {

/// A product of many rows, of which some are gathered at a time and multiplied with all columns.
struct Layer {
  Product product;                             ///< Without what concerns rows.
  void (*multiply)(const Product&) = nullptr;  ///< Loops of `integer()`: a linker drops others.
  void (*sum_groups)(const Product&, int32_t* sums) = nullptr;  ///< Of int4 weights, else null.
  int64_t num_rows = 0;
  Blocks blocks;  ///< To float only.

  Rows rows;                            ///< Where rows come from:
  const float* x = nullptr;             ///< or floats of `rows.depth` each, `rows.stride` apart.
  const RowScale* row_scale = nullptr;  ///< Of every row of int8, to float only.

  /// Groups of a convolution, each with rows, columns and a weight of its own.
  int64_t groups = 1;
  int64_t weight_step = 0;   ///< Bytes between the groups' weights.
  int64_t operand_step = 0;  ///< Between their starts, scales, sums and biases.
};

/// Errors: MemoryAllocationFailed.
Error run_layer(Context& context, const Layer& layer);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_LAYER_H_
