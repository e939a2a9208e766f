// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/work.h"
#include "ops/integer/float_linear.h"
#include "ops/linalg/recurrent_layer.h"

namespace etx::portable {

struct PackedMatrix {
  FloatProduct product;
  Blocks blocks;
  void (*multiply)(const FloatProduct&);
};

namespace {

/// What int4 takes; int8 takes the half of it, too.
constexpr int64_t kUnit = 2 * kBlockDepth;

/// Of int8 or int4, with scales in blocks.
Error read(Context& context, const GivenMatrix& given, Matrix& matrix) {
  const Tensor& scales = given.scales;
  const bool is_int4 = given.weight.scalar_type() == ScalarType::Byte;
  const int64_t groups = scales.dim() == 3 ? max<int64_t>(scales.size(1), 1) : 1;
  const int64_t size = max<int64_t>(divide_up(matrix.depth, groups), 1);
  const Groups all{size, matrix.rows};
  const PackedWeight packed{given.weight, scales, nullptr, given.bias, is_int4, all};
  FloatLinear linear;
  linear.depth = matrix.depth;
  ETX_TRY(read_packed(context, packed, linear));
  if (context.is_loading()) return Error::Ok;
  linear.least = -INFINITY, linear.most = INFINITY;
  ETX_ASSIGN(PackedMatrix* const own,
             scratch<PackedMatrix>(context, 1, "no temporary memory for the columns' operands"));
  own->product = {};
  fill_product(linear, given.weight, nullptr, own->product);
  own->blocks = linear.blocks;
  own->multiply = is_int4 ? integer().weight_only_int4 : integer().weight_only;
  matrix.packed = own;
  return Error::Ok;
}

void multiply(Context& context, const Matrix& matrix, const float* from, int64_t rows,
              int64_t to_pitch, float* to) {
  FloatProduct& p = matrix.packed->product;
  p.x = from, p.x_stride = divide_up(matrix.depth, kUnit) * kUnit, p.num_rows = rows;
  p.y = to, p.y_stride = to_pitch;
  multiply_floats(context, p, matrix.packed->blocks, matrix.packed->multiply);
}

constexpr Packing kPacking = {kUnit, read, multiply};

/// As `lstm`, with weights of int8 or int4.
Error weight_only_lstm_out(Context& context, const Tensor& input, const Tensor& state,
                           const Tensor& cells, const Tensor& input_weight,
                           const Tensor& input_scales, const Tensor& weight, const Tensor& scales,
                           const std::optional<Tensor>& input_bias,
                           const std::optional<Tensor>& bias,
                           const std::optional<Tensor>& projection,
                           const std::optional<Tensor>& projection_scales, bool is_batch_first,
                           bool is_reverse, Tensor& out0, Tensor& out1) {
  const Given given{input,
                    state,
                    {input_weight, input_scales, input_bias},
                    {weight, scales, bias},
                    is_batch_first,
                    is_reverse,
                    &kPacking};
  return run_lstm(context, given, cells, projection, projection_scales, out0, out1);
}

/// As `gru`, with weights of int8 or int4.
Error weight_only_gru_out(Context& context, const Tensor& input, const Tensor& state,
                          const Tensor& input_weight, const Tensor& input_scales,
                          const Tensor& weight, const Tensor& scales,
                          const std::optional<Tensor>& input_bias,
                          const std::optional<Tensor>& bias, bool is_batch_first, bool is_reverse,
                          Tensor& out) {
  const Given given{input,
                    state,
                    {input_weight, input_scales, input_bias},
                    {weight, scales, bias},
                    is_batch_first,
                    is_reverse,
                    &kPacking};
  return run_of_one_state(context, given, Cell::Gru, out);
}

/// As `rnn`, with weights of int8 or int4.
Error weight_only_rnn_out(Context& context, const Tensor& input, const Tensor& state,
                          const Tensor& input_weight, const Tensor& input_scales,
                          const Tensor& weight, const Tensor& scales,
                          const std::optional<Tensor>& input_bias,
                          const std::optional<Tensor>& bias, bool is_batch_first, bool is_reverse,
                          bool is_relu, Tensor& out) {
  const Given given{input,
                    state,
                    {input_weight, input_scales, input_bias},
                    {weight, scales, bias},
                    is_batch_first,
                    is_reverse,
                    &kPacking};
  return run_of_one_state(context, given, is_relu ? Cell::Relu : Cell::Tanh, out);
}

constexpr uint64_t kTaken = dtype_bit(ScalarType::Float) | kChecksAtLoad;
constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::weight_only_lstm.out", weight_only_lstm_out, kTaken),
    ETX_KERNEL("etx::weight_only_gru.out", weight_only_gru_out, kTaken),
    ETX_KERNEL("etx::weight_only_rnn.out", weight_only_rnn_out, kTaken),
};

}  // namespace

ETX_KERNEL_TABLE(weight_only_recurrent_kernels, kRows);

}  // namespace etx::portable
