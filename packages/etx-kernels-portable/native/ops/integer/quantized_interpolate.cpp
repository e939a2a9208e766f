// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

/// The points of the output along a dimension of `size` points: int32 (n, 2), whose data are
/// checked where they are there.
Error check_points(Context& context, const Tensor& points, int64_t size) {
  ETX_CHECK(context,
            points.scalar_type() == ScalarType::Int && points.is_contiguous() &&
                points.dim() == 2 && points.size(1) == 2,
            InvalidArgument, "rows and columns must be int32 of sizes (n, 2)");
  if (context.is_loading() && !context.has_data(points)) return Error::Ok;
  const int32_t* const p = points.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < points.size(0); ++i) {
    const int64_t first = p[2 * i], weight = p[2 * i + 1];
    ETX_CHECK(context, weight >= 0 && weight <= kOne, InvalidArgument,
              "weights of rows and columns must be from 0 to 2048");
    ETX_CHECK(context, first >= 0 && first + (weight > 0 ? 1 : 0) < size, InvalidArgument,
              "rows and columns must lie within the input");
  }
  return Error::Ok;
}

const Between* points_of(const Tensor& tensor) {
  return reinterpret_cast<const Between*>(tensor.const_data_ptr<int32_t>());
}

struct Interpolation {
  const Tensor& input;
  const Between* rows;
  const Between* columns;
  int64_t height, width;  ///< Of the output.
  int32_t zero;
  float scale;
  Bounds bounds;
};

/// Rows [begin, end) of all images of the output.
void interpolate(const Interpolation& m, int64_t begin, int64_t end, int32_t* line, int8_t* y) {
  const int64_t channels = m.input.size(3), row = m.input.size(2) * channels;
  for (int64_t i = begin; i < end; ++i) {
    const Between& at = m.rows[i % m.height];
    const int8_t* const a =
        m.input.const_data_ptr<int8_t>() + (i / m.height * m.input.size(1) + at.first) * row;
    integer().between_rows(a, at.weight == 0 ? a : a + row, at.weight, m.zero, line, row);
    integer().between_points(line, m.columns, m.width, channels, m.scale, m.bounds,
                             y + i * m.width * channels);
  }
}

/// out = clamp(round(sum of (input - zero point) * weights * (scale / 2^22)) + zero point).
Error quantized_interpolate_out(Context& context, const Tensor& input, const Tensor& rows,
                                const Tensor& columns, double scale, int64_t input_zero_point,
                                int64_t output_zero_point, int64_t output_min, int64_t output_max,
                                Tensor& out) {
  Bounds bounds;
  float factor = 0;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, bounds));
  ETX_TRY(read_scale(context, scale / kOne / kOne, factor));
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_CHECK(context, input.impl() != out.impl(), InvalidArgument, "out must not be an input");
  ETX_CHECK(context, input.dim() == 4, InvalidArgument, "input must have 4 dimensions");
  ETX_TRY(check_points(context, rows, input.size(1)));
  ETX_TRY(check_points(context, columns, input.size(2)));
  Shape shape(input);
  shape[1] = rows.size(0);
  shape[2] = columns.size(0);
  ETX_TRY(set_sizes(context, {&input, 1}, out, shape));
  if (context.is_loading() || out.numel() == 0) return Error::Ok;
  const Interpolation m = {input,        points_of(rows), points_of(columns),
                           rows.size(0), columns.size(0), static_cast<int32_t>(input_zero_point),
                           factor,       bounds};
  const int64_t lines = input.size(0) * m.height, row = input.size(2) * input.size(3);
  const int64_t cost = 2 * (row + m.width * input.size(3));
  const int64_t slots =
      max<int64_t>(min(min(lines, int64_t{context.num_threads()}), lines * cost / kThreadWork), 1);
  const int64_t share = divide_up(lines, slots);
  ETX_ASSIGN(int32_t* const memory,
             scratch<int32_t>(context, slots * row, "no temporary memory for a row of the image"));
  int8_t* const y = out.mutable_data_ptr<int8_t>();
  context.parallel_for(0, slots, 1, [&](int64_t begin, int64_t end) {
    interpolate(m, begin * share, min(end * share, lines), memory + begin * row, y);
  });
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_interpolate.out", quantized_interpolate_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_interpolate_kernels, kRows);

}  // namespace etx::portable
