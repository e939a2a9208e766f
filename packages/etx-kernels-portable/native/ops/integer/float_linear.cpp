// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/float_linear.h"

#include <cmath>

#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "isa/widen.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

bool is_float32(const Tensor& tensor) {
  return tensor.scalar_type() == ScalarType::Float && tensor.is_contiguous();
}

bool is_bfloat16(const Tensor& tensor) {
  return tensor.scalar_type() == ScalarType::BFloat16 && tensor.is_contiguous();
}

constexpr char kNoMemory[] = "no temporary memory for the columns' operands";

/// Groups of int4 begin where two blocks of the depth do.
constexpr int64_t kGroupUnit = 2 * kBlockDepth;

Error read_groups(Context& context, const PackedWeight& a, FloatLinear& linear) {
  const int64_t size = a.groups->size;
  ETX_CHECK(context, size >= 1, InvalidArgument, "group_size must be at least 1");
  linear.groups = linear.depth <= size ? 1 : divide_up(linear.depth, size);
  ETX_CHECK(context, linear.groups == 1 || (a.is_int4 && size % kGroupUnit == 0), InvalidArgument,
            "groups must be of a multiple of 8 of the depth; of int8 there is one");
  if (linear.groups > 1) linear.group_steps = size / kBlockDepth;
  const auto is_packed = [&](const Tensor& operand) {
    return operand.dim() == 3 && operand.size(0) == a.weight.size(0) &&
           operand.size(1) == linear.groups && operand.size(2) == kBlockColumns;
  };
  ETX_CHECK(context, is_packed(a.scales) && (a.sums == nullptr || is_packed(*a.sums)),
            InvalidArgument, "weight_scales and weight_sums must be (ceil(N / 16), groups, 16)");
  return Error::Ok;
}

/// The numbers of a last block of columns, filled up with zeros.
template <typename T>
Error copy_last_block(Context& context, const T* from, int64_t columns, const T*& to) {
  if (from == nullptr) return Error::Ok;
  const int64_t n = columns % kBlockColumns;
  ETX_ASSIGN(T* const block, scratch<T>(context, kBlockColumns, kNoMemory));
  for (int64_t i = 0; i < kBlockColumns; ++i) block[i] = i < n ? from[columns - n + i] : 0;
  to = block;
  return Error::Ok;
}

/// Those of a weight with groups, whose scales and sums are packed in blocks.
Error read_last_block(Context& context, const FloatColumns& all, const FloatLinear& linear,
                      FloatColumns& last) {
  const int64_t block = linear.groups * kBlockColumns, before = linear.blocks.partial * block;
  if (all.sums != nullptr) last.sums = all.sums + before;
  if (all.narrow_scales == nullptr) {
    last.scales = all.scales + before;
    return Error::Ok;
  }
  last.narrow_scales = all.narrow_scales + before;
  ETX_ASSIGN(float* const scales, scratch<float>(context, block, kNoMemory));
  from_bfloat16(last.narrow_scales, scales, block);
  last.scales = scales;
  return Error::Ok;
}

/// Of constants: results are finite where rows are.
Error check_numbers(Context& context, const PackedWeight& a, const FloatLinear& linear) {
  const void* const scales = a.scales.const_data_ptr();
  for (int64_t i = 0; context.has_data(a.scales) && i < a.scales.numel(); ++i) {
    const float scale = is_float32(a.scales) ? static_cast<const float*>(scales)[i]
                                             : float{static_cast<const BFloat16*>(scales)[i]};
    ETX_CHECK(context, std::isfinite(scale), InvalidArgument, "weight_scales must be finite");
  }
  if (a.sums == nullptr || !context.has_data(*a.sums)) return Error::Ok;
  const int64_t most = (Checked(linear.depth) * 128).value_or(INT64_MAX);
  ETX_CHECK(context, are_within(*a.sums, most), InvalidArgument, kWrongSums);
  return Error::Ok;
}

}  // namespace

Error read_packed(Context& context, const PackedWeight& a, FloatLinear& linear) {
  const bool int4 = a.is_int4, grouped = a.groups.has_value();
  // Only int4 in dynamic layers: they have sums.
  const bool may_be_narrow = int4 && a.sums != nullptr;
  ETX_CHECK(context, is_float32(a.scales) || (may_be_narrow && is_bfloat16(a.scales)),
            InvalidArgument,
            may_be_narrow ? "weight_scales must be contiguous float32 or bfloat16"
                          : "weight_scales must be contiguous float32");
  ETX_CHECK(context, grouped || a.scales.dim() == 1, InvalidArgument,
            "weight_scales must be one for each output channel");
  linear.columns = grouped ? a.groups->columns : a.scales.numel();
  ETX_CHECK(context, linear.columns >= 0 && linear.columns <= INT32_MAX, InvalidArgument,
            "out_features must be from 0 to 2^31 - 1");
  ETX_TRY(check_packed(context, a.weight, int4 ? ScalarType::Byte : ScalarType::Char, 1,
                       linear.columns, linear.depth, int4 ? kGroupUnit : kBlockDepth));
  linear.steps = linear.group_steps = a.weight.size(1) * (int4 ? 2 : 1);
  if (grouped) ETX_TRY(read_groups(context, a, linear));
  ETX_CHECK(context,
            !a.bias.has_value() ||
                (is_float32(*a.bias) && a.bias->dim() == 1 && a.bias->size(0) == linear.columns),
            InvalidArgument, "bias must be contiguous float32, one for each output channel");
  ETX_CHECK(context,
            a.sums == nullptr || (a.sums->scalar_type() == ScalarType::Int &&
                                  a.sums->is_contiguous() && a.sums->numel() == a.scales.numel()),
            InvalidArgument, "weight_sums must be int32 of the shape of weight_scales");
  if (context.is_loading()) return check_numbers(context, a, linear);
  FloatColumns& all = linear.blocks.columns;
  if (is_float32(a.scales)) {
    all.scales = a.scales.const_data_ptr<float>();
  } else {
    all.narrow_scales = static_cast<const uint16_t*>(a.scales.const_data_ptr());
  }
  if (a.bias.has_value()) all.bias = a.bias->const_data_ptr<float>();
  if (a.sums != nullptr) all.sums = a.sums->const_data_ptr<int32_t>();
  linear.blocks.bytes = linear.steps * (int4 ? kBlockBytes / 2 : kBlockBytes);
  if (linear.columns % kBlockColumns == 0) return Error::Ok;
  linear.blocks.partial = linear.columns / kBlockColumns;
  FloatColumns& last = linear.blocks.partial_columns;
  ETX_TRY(copy_last_block(context, all.bias, linear.columns, last.bias));
  if (grouped) return read_last_block(context, all, linear, last);
  ETX_TRY(copy_last_block(context, all.scales, linear.columns, last.scales));
  ETX_TRY(copy_last_block(context, all.sums, linear.columns, last.sums));
  return Error::Ok;
}

Error read_float_linear(Context& context, const FloatLinearArguments& a, const Tensor& out,
                        FloatLinear& linear) {
  ETX_CHECK(context, is_float32(a.input) && is_float32(out) && a.input.dim() > 0, InvalidArgument,
            "input and out must be contiguous float32 of at least one dimension");
  ETX_CHECK(context, a.input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  linear.depth = a.input.size(-1);
  ETX_TRY(read_packed(context, a.packed, linear));
  linear.least = static_cast<float>(a.output_min);
  linear.most = static_cast<float>(a.output_max);
  ETX_CHECK(context, linear.least <= linear.most, InvalidArgument,
            "output_min and output_max must be numbers, and output_min not above output_max");
  Shape shape(a.input);
  shape[shape.rank() - 1] = linear.columns;
  ETX_TRY(set_sizes(context, {&a.input, 1}, out, shape));
  linear.rows = linear.columns == 0 ? 0 : out.numel() / linear.columns;
  return Error::Ok;
}

void multiply_floats(Context& context, const FloatProduct& product, const Blocks& blocks,
                     void (*multiply)(const FloatProduct&)) {
  const int64_t count = product.end;
  const Checked work = Checked(product.num_rows) * product.columns * (product.steps * kBlockDepth);
  const int64_t threads = min(useful_threads(context, work), count);
  if (threads == 1) return multiply_columns(product, blocks, multiply);
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Part part(count, 1, i, threads);
      FloatProduct own = product;
      own.begin = part.begin;
      own.end = part.end;
      multiply_columns(own, blocks, multiply);
    }
  });
}

}  // namespace etx::portable
