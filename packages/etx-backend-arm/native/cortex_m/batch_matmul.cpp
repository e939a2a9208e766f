// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"
#include "cortex_m/operands.h"
#include "cortex_m/product.h"

namespace etx::cortex_m {
namespace {

bool is_batch(const Tensor& tensor) {
  return is_int8(tensor) && tensor.dim() == 3 && tensor.is_contiguous();
}

bool is_byte_offset(int64_t number) { return number >= -128 && number <= 128; }

/// Sums of (lhs + lhs_zero_point) * (rhs + rhs_zero_point): the zero points are negated ones. Both
/// operands are rows of what is summed.
Error batch_matmul_out(Context& context, const Tensor& lhs, int64_t lhs_zero_point,
                       const Tensor& rhs, int64_t rhs_zero_point, int64_t output_zero_point,
                       int64_t multiplier, int64_t shift, const Tensor&, Tensor& out) {
  ETX_CHECK(context, is_batch(lhs) && is_batch(rhs) && is_batch(out), InvalidArgument,
            "operands and out must be contiguous int8 of rank 3");
  const ssize_t batches = lhs.size(0), rows = lhs.size(1), depth = lhs.size(2);
  const ssize_t columns = rhs.size(1);
  ETX_CHECK(context,
            rhs.size(0) == batches && rhs.size(2) == depth && out.size(0) == batches &&
                out.size(1) == rows && out.size(2) == columns,
            InvalidArgument, "operands must be (n, a, c) and (n, b, c), out (n, a, b)");
  ETX_CHECK(context, depth > 0 && depth <= (1 << 15) - 1 && columns <= (1 << 24), NotSupported,
            "a sum must have at most 32,767 products");
  ETX_CHECK(context,
            is_byte_offset(lhs_zero_point) && is_byte_offset(rhs_zero_point) &&
                is_offset(output_zero_point) && is_factor(multiplier, shift),
            InvalidArgument,
            "zero points must be those of int8, multiplier int32, shift within -31 and 31");
  const auto count = static_cast<int32_t>(columns);
  auto* const numbers = context.allocate_temp_array<int32_t>(static_cast<size_t>(count) * 4);
  ETX_CHECK(context, numbers != nullptr, MemoryAllocationFailed,
            "not enough temporary memory for four numbers of each column");
  for (int32_t c = 0; c < count; ++c) {
    numbers[c] = static_cast<int32_t>(multiplier);
    numbers[c + count] = static_cast<int32_t>(shift);
  }
  int32_t* const start = numbers + 2 * count;
  const Offsets offsets = {static_cast<int32_t>(lhs_zero_point),
                           static_cast<int32_t>(rhs_zero_point)};
  const Epilogue end = {static_cast<int32_t>(output_zero_point), -128, 127};
  const auto width = static_cast<int32_t>(depth);
  Product product = {
      rhs.const_data_ptr<int8_t>(), width, count, start, numbers, numbers + count, end};
  Rows x = {lhs.const_data_ptr<int8_t>(), static_cast<int32_t>(rows), width};
  int8_t* to = out.mutable_data_ptr<int8_t>();
  for (ssize_t n = 0; n < batches; ++n, to += rows * columns) {
    fold_offset(product, nullptr, offsets.x, start);
    if (offsets.weight == 0) {
      multiply(product, x, to, count);
    } else {
      multiply(product, x, offsets, start + count, to);
    }
    product.weight += columns * depth;
    x.first += rows * depth;
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_batch_matmul.out", batch_matmul_out)};

}  // namespace

ETX_KERNEL_TABLE(batch_matmul_kernels, kRows);

}  // namespace etx::cortex_m
