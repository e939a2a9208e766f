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

struct FloatLinearArguments {
  const Tensor& input;
  const Tensor& weight;
  const Tensor& scales;
  const Tensor* sums;  ///< Null: not needed.
  const std::optional<Tensor>& bias;
  double output_min, output_max;
  std::optional<int64_t> group_size, columns;  ///< None: int8 with a scale for each column.
};

/// Checks the arguments and resizes `out`. Errors: InvalidArgument.
Error read_float_linear(Context& context, const FloatLinearArguments& arguments, const Tensor& out,
                        FloatLinear& linear);

/// Sets what products of quantized rows (Product) and of float ones (FloatProduct) have in common.
template <typename P>
void fill_product(const FloatLinear& linear, const Tensor& weight, const Tensor& out, P& p) {
  p.weight = static_cast<const int8_t*>(weight.const_data_ptr());
  p.columns = linear.columns;
  p.steps = linear.steps;
  p.end = weight.size(0);
  set_columns(linear.blocks.columns, p);
  p.least = linear.least;
  p.most = linear.most;
  p.groups = linear.groups;
  p.group_steps = linear.group_steps;
  p.y = out.mutable_data_ptr<float>();
  p.y_stride = linear.columns;
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_FLOAT_LINEAR_H_
