// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/recurrent_layer.h"

namespace etx::portable {
namespace {

/// y[t] = h = o tanh(c), c = f c + i g, or what `projection` makes of this h.
Error lstm_out(Context& context, const Tensor& input, const Tensor& state, const Tensor& cells,
               const Tensor& input_weight, const Tensor& weight,
               const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
               const std::optional<Tensor>& projection, bool is_batch_first, bool is_reverse,
               Tensor& out0, Tensor& out1) {
  const Given given{
      input,          state,     {input_weight, input_weight, input_bias}, {weight, weight, bias},
      is_batch_first, is_reverse};
  return run_lstm(context, given, cells, projection, projection, out0, out1);
}

/// y[t] = h = z (h - n) + n, n = tanh(input's part + r (the state's part)).
Error gru_out(Context& context, const Tensor& input, const Tensor& state,
              const Tensor& input_weight, const Tensor& weight,
              const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
              bool is_batch_first, bool is_reverse, Tensor& out) {
  const Given given{
      input,          state,     {input_weight, input_weight, input_bias}, {weight, weight, bias},
      is_batch_first, is_reverse};
  return run_of_one_state(context, given, Cell::Gru, out);
}

/// y[t] = h = tanh or relu of the sum of both parts.
Error rnn_out(Context& context, const Tensor& input, const Tensor& state,
              const Tensor& input_weight, const Tensor& weight,
              const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
              bool is_batch_first, bool is_reverse, bool is_relu, Tensor& out) {
  const Given given{
      input,          state,     {input_weight, input_weight, input_bias}, {weight, weight, bias},
      is_batch_first, is_reverse};
  return run_of_one_state(context, given, is_relu ? Cell::Relu : Cell::Tanh, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::lstm.out", lstm_out, Single::bits),
    ETX_KERNEL("etx::gru.out", gru_out, Single::bits),
    ETX_KERNEL("etx::rnn.out", rnn_out, Single::bits),
};

}  // namespace

ETX_KERNEL_TABLE(recurrent_kernels, kRows);

}  // namespace etx::portable
