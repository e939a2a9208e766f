// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/float_linear.h"

#include <cmath>
#include <cstring>

#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

bool is_float32(const Tensor& tensor) {
  return tensor.scalar_type() == ScalarType::Float && tensor.is_contiguous();
}

/// Groups of int4 begin where two blocks of the depth do.
constexpr int64_t kGroupUnit = 2 * kBlockDepth;

Error read_groups(Context& context, const FloatLinearArguments& a, FloatLinear& linear) {
  const int64_t size = *a.group_size;
  ETX_CHECK(context, size >= 1, InvalidArgument, "group_size must be at least 1");
  linear.groups = linear.depth <= size ? 1 : divide_up(linear.depth, size);
  ETX_CHECK(context, linear.groups == 1 || size % kGroupUnit == 0, InvalidArgument,
            "group_size must be a multiple of 8, or not less than the depth");
  linear.steps = a.weight.size(1) * 2;
  linear.group_steps = linear.groups == 1 ? linear.steps : size / kBlockDepth;
  ETX_CHECK(context,
            a.scales.dim() == 2 && a.scales.size(0) == linear.groups &&
                a.scales.size(1) == linear.columns,
            InvalidArgument, "weight_scales must be (groups, N)");
  return Error::Ok;
}

/// The last block of columns of `rows` rows, filled up with zeros.
template <typename T>
Error copy_last_block(Context& context, const T* from, int64_t rows, int64_t columns,
                      const T*& to) {
  if (from == nullptr) return Error::Ok;
  const int64_t n = columns % kBlockColumns;
  ETX_ASSIGN(T* const block, scratch<T>(context, (Checked(rows) * kBlockColumns).value_or(-1),
                                        "no temporary memory for the columns' operands"));
  for (int64_t i = 0; i < rows; ++i) {
    T* const row = block + i * kBlockColumns;
    memcpy(row, from + (i + 1) * columns - n, static_cast<size_t>(n) * sizeof(T));
    for (int64_t k = n; k < kBlockColumns; ++k) row[k] = 0;
  }
  to = block;
  return Error::Ok;
}

/// Of constants: results are finite where rows are.
Error check_numbers(Context& context, const FloatLinearArguments& a, const FloatLinear& linear) {
  const float* const scales = a.scales.const_data_ptr<float>();
  for (int64_t i = 0; context.has_data(a.scales) && i < a.scales.numel(); ++i) {
    ETX_CHECK(context, std::isfinite(scales[i]), InvalidArgument, "weight_scales must be finite");
  }
  if (a.sums == nullptr || !context.has_data(*a.sums)) return Error::Ok;
  const int64_t most = (Checked(linear.depth) * 128).value_or(INT64_MAX);
  ETX_CHECK(context, are_within(*a.sums, most), InvalidArgument, kWrongSums);
  return Error::Ok;
}

}  // namespace

Error read_float_linear(Context& context, const FloatLinearArguments& a, const Tensor& out,
                        FloatLinear& linear) {
  const bool int4 = a.group_size.has_value();
  ETX_CHECK(context, is_float32(a.input) && is_float32(out) && a.input.dim() > 0, InvalidArgument,
            "input and out must be contiguous float32 of at least one dimension");
  ETX_CHECK(context, is_float32(a.scales) && a.scales.dim() > 0, InvalidArgument,
            "weight_scales must be contiguous float32, one for each output channel");
  ETX_CHECK(context, a.input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  linear.depth = a.input.size(-1);
  linear.columns = a.scales.size(-1);
  ETX_TRY(check_packed(context, a.weight, int4 ? ScalarType::Byte : ScalarType::Char, 1,
                       linear.columns, linear.depth, int4 ? kGroupUnit : kBlockDepth));
  if (int4) {
    ETX_TRY(read_groups(context, a, linear));
  } else {
    ETX_CHECK(context, a.scales.dim() == 1, InvalidArgument,
              "weight_scales must be contiguous float32, one for each output channel");
    linear.steps = linear.group_steps = a.weight.size(1);
  }
  ETX_CHECK(context,
            !a.bias.has_value() ||
                (is_float32(*a.bias) && a.bias->dim() == 1 && a.bias->size(0) == linear.columns),
            InvalidArgument, "bias must be contiguous float32, one for each output channel");
  ETX_CHECK(
      context,
      a.sums == nullptr || (a.sums->scalar_type() == ScalarType::Int && a.sums->is_contiguous() &&
                            (Checked(linear.groups) * linear.columns).is(a.sums->numel())),
      InvalidArgument, "weight_sums must be int32 of the shape of weight_scales");
  linear.least = static_cast<float>(a.output_min);
  linear.most = static_cast<float>(a.output_max);
  ETX_CHECK(context, linear.least <= linear.most, InvalidArgument,
            "output_min and output_max must be numbers, and output_min not above output_max");
  Shape shape(a.input);
  shape[shape.rank() - 1] = linear.columns;
  ETX_TRY(set_sizes(context, {&a.input, 1}, out, shape));
  if (context.is_loading()) return check_numbers(context, a, linear);
  linear.rows = linear.columns == 0 ? 0 : out.numel() / linear.columns;
  FloatColumns& all = linear.operands;
  all = {a.scales.const_data_ptr<float>(),
         a.bias.has_value() ? a.bias->const_data_ptr<float>() : nullptr,
         a.sums == nullptr ? nullptr : a.sums->const_data_ptr<int32_t>(), linear.columns};
  if (linear.columns % kBlockColumns == 0) return Error::Ok;
  linear.last.index = linear.columns / kBlockColumns;
  linear.last.weight = linear.last.index * (a.weight.numel() / a.weight.size(0));
  FloatColumns& last = linear.last.operands;
  last.stride = kBlockColumns;
  ETX_TRY(copy_last_block(context, all.scales, linear.groups, linear.columns, last.scales));
  ETX_TRY(copy_last_block(context, all.bias, 1, linear.columns, last.bias));
  ETX_TRY(copy_last_block(context, all.sums, linear.groups, linear.columns, last.sums));
  return Error::Ok;
}

}  // namespace etx::portable
