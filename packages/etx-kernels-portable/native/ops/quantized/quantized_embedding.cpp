// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/cast.h"
#include "core/dispatch.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "ops/index/index_plan.h"

namespace etx::portable {
namespace {

/// A table of quantized rows. Each row has one scale, or one for each of equally long groups.
struct Table {
  Tensor weight;
  Tensor scales;
  std::optional<Tensor> zeros;
  int64_t rows;
  int64_t columns;  ///< Numbers in a row.
  int64_t groups;
};

/// Number i of a row of packed weights. 4 bits: the first number in the upper half of the byte; 2
/// bits: in the lowest bits. Packed numbers are stored with their smallest value as 0.
template <int bits>
float unpack(const uint8_t* row, int64_t i) {
  if constexpr (bits == 4) {
    return static_cast<float>(i % 2 == 0 ? row[i / 2] >> 4 : row[i / 2] & 15) - 8.0f;
  } else {
    return static_cast<float>(row[i / 4] >> (i % 4 * 2) & 3) - 2.0f;
  }
}

Error read_table(Context& context, const Tensor& weight, const Tensor& scales,
                 const std::optional<Tensor>& zeros, int bits, Table& table) {
  ETX_CHECK(context, weight.dim() == 2 && weight.is_contiguous(), InvalidArgument,
            "weight must have 2 dimensions and be contiguous");
  ETX_CHECK(context,
            weight.scalar_type() == ScalarType::Byte ||
                (bits == 8 && weight.scalar_type() == ScalarType::Char),
            NotSupported, "weight must be uint8, or int8 where numbers are not packed");
  table.rows = weight.size(0);
  table.columns = weight.size(1) * (8 / bits);
  ETX_CHECK(context,
            (scales.dim() == 1 || scales.dim() == 2) && scales.size(0) == table.rows &&
                scales.is_contiguous() && is_floating(scales.scalar_type()),
            InvalidArgument, "weight_scales must have a row, or number, for each row of weight");
  table.groups = scales.dim() == 2 ? scales.size(1) : 1;
  ETX_CHECK(context, table.groups > 0 && table.columns % table.groups == 0, InvalidArgument,
            "the groups of weight_scales must divide the rows of weight evenly");
  ETX_CHECK(context,
            !zeros.has_value() || (zeros->numel() == scales.numel() && zeros->is_contiguous() &&
                                   is_castable(zeros->scalar_type())),
            InvalidArgument, "weight_zero_points must have the shape of weight_scales");
  return Error::Ok;
}

/// y = dequantized row `row`.
template <int bits>
void read_row(const Table& table, int64_t row, float* y) {
  const int64_t length = table.columns / table.groups;
  const uint8_t* data = table.weight.const_data_ptr<uint8_t>() + row * table.weight.size(1);
  const bool is_signed = table.weight.scalar_type() == ScalarType::Char;
  for (int64_t g = 0; g < table.groups; ++g) {
    const int64_t at = row * table.groups + g;
    float scale;
    float zero = 0;
    cast(element_ptr(table.scales, at), table.scales.scalar_type(), 1, &scale, ScalarType::Float,
         1);
    if (table.zeros.has_value()) {
      cast(element_ptr(*table.zeros, at), table.zeros->scalar_type(), 1, &zero, ScalarType::Float,
           1);
    }
    const int64_t begin = g * length;
    for (int64_t i = begin; i < begin + length; ++i) {
      if constexpr (bits == 8) {
        y[i] = is_signed ? static_cast<float>(static_cast<int8_t>(data[i]))
                         : static_cast<float>(data[i]);
      } else {
        y[i] = unpack<bits>(data, i);
      }
      y[i] = (y[i] - zero) * scale;
    }
  }
}

template <int bits>
Error embedding_out(Context& context, const Tensor& weight, const Tensor& weight_scales,
                    std::optional<Tensor> weight_zero_points, int64_t /*weight_quant_min*/,
                    int64_t /*weight_quant_max*/, const Tensor& indices, Tensor& out) {
  Table table{weight, weight_scales, weight_zero_points, 0, 0, 0};
  ETX_TRY(read_table(context, weight, weight_scales, weight_zero_points, bits, table));
  ETX_CHECK(context, is_index_type(indices.scalar_type()) && indices.is_contiguous(),
            InvalidArgument, "indices must be int64 or int32 and contiguous");
  ETX_CHECK(context, is_floating(out.scalar_type()) && out.is_contiguous(), InvalidArgument,
            "out must be of a floating dtype and contiguous");
  ETX_CHECK(context,
            out.impl() != indices.impl() && out.impl() != weight_scales.impl() &&
                (!weight_zero_points.has_value() || out.impl() != weight_zero_points->impl()),
            InvalidArgument, "out must not be an input");
  Shape shape(indices);
  shape.push(table.columns);
  ETX_TRY(resize_out(context, out, shape));
  const bool direct = out.scalar_type() == ScalarType::Float;
  float* row = nullptr;
  if (!direct) {
    ETX_ASSIGN(row,
               scratch<float>(context, table.columns, "no temporary memory for a row of weight"));
  }
  for (int64_t i = 0; i < indices.numel(); ++i) {
    int64_t index = 0;
    ETX_CHECK(context, read_indices(indices, i, 1, 1, table.rows, false, &index), InvalidArgument,
              "indices must be at least 0 and less than weight's rows");
    char* const to = mutable_element_ptr(out, i * table.columns);
    float* const values = direct ? reinterpret_cast<float*>(to) : row;
    read_row<bits>(table, index, values);
    if (!direct) cast(row, ScalarType::Float, 1, to, out.scalar_type(), table.columns);
  }
  return Error::Ok;
}

template <int bits>
Error embedding_dtype_out(Context& context, const Tensor& weight, const Tensor& weight_scales,
                          std::optional<Tensor> weight_zero_points, int64_t weight_quant_min,
                          int64_t weight_quant_max, const Tensor& indices,
                          std::optional<ScalarType> dtype, Tensor& out) {
  ETX_CHECK(context, !dtype.has_value() || out.scalar_type() == *dtype, InvalidArgument,
            "out must be of dtype");
  return embedding_out<bits>(context, weight, weight_scales, weight_zero_points, weight_quant_min,
                             weight_quant_max, indices, out);
}

constexpr uint64_t kPacked = dtype_bit(ScalarType::Byte) | Floating::bits;
constexpr uint64_t kBytes = kPacked | dtype_bit(ScalarType::Char);

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("quantized_decomposed::embedding_byte.out", embedding_out<8>, kBytes),
    ETX_KERNEL("quantized_decomposed::embedding_byte.dtype_out", embedding_dtype_out<8>, kBytes),
    ETX_KERNEL("quantized_decomposed::embedding_4bit.out", embedding_out<4>, kPacked),
    ETX_KERNEL("quantized_decomposed::embedding_4bit.dtype_out", embedding_dtype_out<4>, kPacked),
    ETX_KERNEL("quantized_decomposed::embedding_2bit.out", embedding_out<2>, kPacked),
    ETX_KERNEL("quantized_decomposed::embedding_2bit.dtype_out", embedding_dtype_out<2>, kPacked),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_embedding_kernels, kRows);

}  // namespace etx::portable
