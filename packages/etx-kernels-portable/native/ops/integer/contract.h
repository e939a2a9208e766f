// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_CONTRACT_H_
#define ETX_PORTABLE_CONTRACT_H_

#include <etx/kernel.h>

#include "core/checked.h"
#include "core/shape.h"
#include "isa/integer/integer.h"

namespace etx::portable {

/// What the integer operators ask of their arguments. Errors: InvalidArgument, with a reason. All
/// of it holds while a method is loaded, too, of what is known then.

constexpr bool is_int8(int64_t value) { return value >= -128 && value <= 127; }

/// `reason` is said of a zero point outside of int8.
Error check_zero_point(Context& context, int64_t zero_point, const char* reason);
inline Error check_input_zero_point(Context& context, int64_t zero_point) {
  return check_zero_point(context, zero_point, "input_zero_point must be within int8, -128 to 127");
}

/// The zero point and bounds of the output, all int8.
Error read_bounds(Context& context, int64_t zero_point, int64_t low, int64_t high, Bounds& bounds);

/// A finite number above 0 as float32, else `reason`; `may_be_negative`: other than 0.
Error read_scale(Context& context, double scale, bool may_be_negative, const char* reason,
                 float& value);
inline Error read_scale(Context& context, double scale, float& value) {
  return read_scale(context, scale, false, "scale must be finite and greater than 0 as float32",
                    value);
}

/// Resizes `out`, the result of `inputs`; at load compares sizes that do not change.
Error set_sizes(Context& context, Span<const Tensor> inputs, const Tensor& out, const Shape& shape);

/// True when all of an int32 tensor are from -most to most.
bool are_within(const Tensor& tensor, int64_t most);
constexpr char kWrongSums[] =
    "weight_sums must be sums of the weight's rows: |sum| at most the depth times 128";

/// Contiguous int8 tensors.
Error check_int8(Context& context, const Tensor& tensor, const char* reason);

/// A packed weight of `columns` columns: its blocks along the depth, of which each has `per_block`
/// numbers (4, or 8 of int4).
Error check_packed(Context& context, const Tensor& weight, ScalarType type, int64_t groups,
                   int64_t columns, int64_t depth, int64_t per_block);

/// The operands by column of a product that becomes int8: `start` holds, group by group and
/// padded to whole panels, bias less the part of the zero point, and `scale` is padded likewise.
/// Nothing at load.
struct ColumnOperands {
  int32_t* start = nullptr;
  float* scale = nullptr;
  int64_t padded = 0;  ///< Columns of a group, and what is between groups.
};
Error read_columns(Context& context, const Tensor& sums, const std::optional<Tensor>& bias,
                   const Tensor& scale, int64_t columns, int64_t groups, int64_t depth,
                   int64_t offset, ColumnOperands& operands);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_CONTRACT_H_
