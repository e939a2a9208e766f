// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_FLOAT_LINEAR_H_
#define ETX_PORTABLE_FLOAT_LINEAR_H_

#include <etx/kernel.h>

#include "ops/integer/columns.h"

namespace etx::portable {

/// What products of float32 rows with a packed weight have in common.
struct FloatLinear {
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t group_steps = 0;  ///< Blocks along the depth of a group.
  int64_t steps = 0;        ///< Blocks along the depth of all.
  int64_t groups = 1;       ///< Of the depth, with a scale for each column.
  Blocks blocks;
  float least = 0, most = 0;
};

/// Scales and sums are (blocks of columns, groups, kBlockColumns).
struct Groups {
  int64_t size;     ///< Of the depth.
  int64_t columns;  ///< Of all blocks.
};

struct PackedWeight {
  const Tensor& weight;
  const Tensor& scales;
  const Tensor* sums;  ///< Null: not needed.
  const std::optional<Tensor>& bias;
  bool is_int4;
  std::optional<Groups> groups;  ///< None: a scale for each column.
};

struct FloatLinearArguments {
  const Tensor& input;
  PackedWeight packed;
  double output_min, output_max;
};

/// Checks a weight for rows of `linear.depth`, and sets what does not depend on rows.
/// Errors: InvalidArgument.
Error read_packed(Context& context, const PackedWeight& packed, FloatLinear& linear);

/// Checks the arguments and resizes `out`. Errors: InvalidArgument.
Error read_float_linear(Context& context, const FloatLinearArguments& arguments, const Tensor& out,
                        FloatLinear& linear);

/// Sets what products of quantized rows (Product) and of float ones (FloatProduct) have in common.
template <typename P>
void fill_product(const FloatLinear& linear, const Tensor& weight, float* y, P& p) {
  p.weight = static_cast<const int8_t*>(weight.const_data_ptr());
  p.columns = linear.columns;
  p.steps = linear.steps;
  p.end = weight.size(0);
  set_columns(linear.blocks.columns, p);
  p.least = linear.least;
  p.most = linear.most;
  p.groups = linear.groups;
  p.group_steps = linear.group_steps;
  p.y = y;
  p.y_stride = linear.columns;
}

/// Calls `multiply` of `integer()` for all columns, on several threads.
void multiply_floats(Context& context, const FloatProduct& product, const Blocks& blocks,
                     void (*multiply)(const FloatProduct&));

}  // namespace etx::portable

#endif  // ETX_PORTABLE_FLOAT_LINEAR_H_
