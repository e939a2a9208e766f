// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

/// float16 and bfloat16 are computed in float32.
using Single = Join<Float32, ReducedFloating>;
/// Rows of the input that are multiplied at a time.
constexpr int64_t kRowsAtOnce = kIsSmall ? 1 : 256;

constexpr const char* kDtype = "all tensors must have the same dtype";

enum class Cell : uint8_t { Lstm, Gru, Tanh, Relu };

/// The arguments that all cells have.
struct Given {
  const Tensor &input, &state, &input_weight, &weight;
  const std::optional<Tensor>&input_bias, &bias;
  bool is_batch_first, is_reverse;
};

/// One layer, in one direction: y[t] = h = cell(input[t] input_weight^T + input_bias,
/// h weight^T + bias). Rows of gates are `width` x 4 (LSTM: input, forget, cell, output), x 3 (GRU:
/// reset, update, new) or x 1.
struct Layer {
  Cell cell;
  int64_t steps, batch, inputs, states, width;
  const float *x, *input_weight, *weight, *input_bias, *bias;
  const float* projection = nullptr;  ///< Of an LSTM: states x width.
  float *h, *y;
  float* c = nullptr;         ///< Of an LSTM.
  float* gates = nullptr;     ///< Of `at_once()` steps.
  float* sums = nullptr;      ///< The states' part of the gates of one step.
  float* gathered = nullptr;  ///< The input of `at_once()` steps, where the batch comes first.
  float* panels = nullptr;    ///< Of states.
  int64_t packed = 0;         ///< Floats for a state in panels; 0: there are too few rows.
  int64_t threads = 1;
  bool is_batch_first, is_reverse;

  int64_t lines() const { return width * (cell == Cell::Lstm ? 4 : (cell == Cell::Gru ? 3 : 1)); }
  int64_t at_once() const { return min(steps, divide_up(kRowsAtOnce, batch)); }
  bool gathers() const { return is_batch_first && batch > 1; }
  int64_t floats() const {
    const int64_t rows = at_once() * batch;
    return batch * (states + lines()) + packed + rows * lines() + (gathers() ? rows * inputs : 0);
  }
  void place(float* memory) {
    h = memory, sums = h + batch * states, panels = sums + batch * lines();
    gates = panels + packed, gathered = gates + at_once() * batch * lines();
  }
  void plan(const Context& context) {
    const int64_t tile = isa().tile_columns;
    threads = useful_threads(context, Checked(batch) * states * lines() * kReadCost);
    if (batch > dot_rows()) packed = divide_up(batch, tile) * tile * max(states, width);
  }

  /// to = from w^T + added for the rows of the batch.
  void multiply(Context& context, const float* from, const float* w, const float* added, float* to,
                int64_t depth, int64_t count) const {
    if (packed != 0) {
      const int64_t tile = isa().tile_columns;
      isa().pack_transposed(from, depth, batch, depth, panels);
      Gemm g;
      g.a = w, g.a_stride = depth;
      g.b = panels, g.b_stride = tile, g.panel_stride = tile * depth;
      g.bias = added;
      g.c = to, g.c_stride = count, g.store = Gemm::Store::Transposed;
      g.depth = depth, g.row_end = count, g.column_end = batch;
      g.column_block = column_block(4 * depth);
      run_gemm(context, g, threads);
      return;
    }
    Gemv d;
    d.x = from, d.x_stride = depth, d.rows = batch;
    d.w = w, d.w_stride = depth, d.depth = depth;
    d.bias = added, d.y = to, d.y_stride = count;
    context.parallel_for(0, count, divide_up(count, threads), [&](int64_t begin, int64_t end) {
      Gemv part = d;
      part.begin = begin, part.end = end;
      isa().gemv(part);
    });
  }

  /// The new state of one row, whose gates `g` and `s` make.
  void update(float* g, const float* s, float* cells, float* state) const {
    const auto n = static_cast<size_t>(width);
    if (cell == Cell::Lstm) {
      isa().add(g, s, g, 4 * n);
      isa().sigmoid(g, g, 2 * n);
      isa().tanh(g + 2 * n, g + 2 * n, n);
      isa().sigmoid(g + 3 * n, g + 3 * n, n);
      isa().mul(g, g + 2 * n, g, n);
      isa().mul(g + n, cells, cells, n);
      isa().add(cells, g, cells, n);
      isa().tanh(cells, g, n);
      isa().mul(g + 3 * n, g, state, n);
    } else if (cell == Cell::Gru) {
      isa().add(g, s, g, 2 * n);
      isa().sigmoid(g, g, 2 * n);
      isa().mul(s + 2 * n, g, g, n);
      isa().add(g + 2 * n, g, g, n);
      isa().tanh(g, g, n);
      isa().sub(state, g, state, n);
      isa().mul(state, g + n, state, n);
      isa().add(state, g, state, n);
    } else {
      isa().add(g, s, state, n);
      (cell == Cell::Tanh ? isa().tanh : isa().relu)(state, state, n);
    }
  }

  void step(Context& context, int64_t t, float* g) const {
    multiply(context, h, weight, bias, sums, states, lines());
    // The states of a projection are sums of what lies where their part of the gates lay.
    float* const states_of = projection == nullptr ? h : sums;
    for (int64_t n = 0; n < batch; ++n) {
      float* const cells = cell == Cell::Lstm ? c + n * width : nullptr;
      update(g + n * lines(), sums + n * lines(), cells, states_of + n * width);
    }
    if (projection != nullptr) multiply(context, sums, projection, nullptr, h, width, states);
    for (int64_t n = 0; n < batch; ++n) {
      float* const to = y + (is_batch_first ? n * steps + t : t * batch + n) * states;
      std::memcpy(to, h + n * states, static_cast<size_t>(states) * sizeof(float));
    }
  }

  /// The input of `count` steps from `first` on, a row for each step and each of the batch.
  const float* rows(int64_t first, int64_t count) const {
    if (!gathers()) return x + first * batch * inputs;
    const auto bytes = static_cast<size_t>(inputs) * sizeof(float);
    for (int64_t i = 0; i < count * batch; ++i) {
      const int64_t t = first + i / batch, n = i % batch;
      std::memcpy(gathered + i * inputs, x + (n * steps + t) * inputs, bytes);
    }
    return gathered;
  }

  Error run(Context& context) const {
    for (int64_t done = 0; done < steps;) {
      const int64_t count = min(at_once(), steps - done);
      const int64_t first = is_reverse ? steps - done - count : done;
      ETX_TRY(multiply_transposed(context, rows(first, count), input_weight, input_bias, gates,
                                  count * batch, inputs, lines()));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t t = is_reverse ? count - 1 - i : i;
        step(context, first + t, gates + t * batch * lines());
      }
      done += count;
    }
    return Error::Ok;
  }
};

Error check_layer(Context& context, const Given& given, const Layer& layer) {
  ETX_CHECK(context,
            given.input_weight.size(0) == layer.lines() && given.weight.size(0) == layer.lines() &&
                given.input_weight.size(1) == layer.inputs && given.weight.size(1) == layer.states,
            InvalidArgument,
            "weights must have a row for each gate of each cell, and the columns of input and of "
            "the state");
  for (const std::optional<Tensor>* bias : {&given.input_bias, &given.bias}) {
    if (!bias->has_value()) continue;
    ETX_CHECK(context, (*bias)->dim() == 1 && (*bias)->size(0) == layer.lines(), InvalidArgument,
              "a bias must have an element for each row of the weights");
    ETX_CHECK(context, (*bias)->scalar_type() == given.input.scalar_type(), InvalidArgument,
              kDtype);
  }
  ETX_CHECK(context, given.state.size(0) == layer.batch, InvalidArgument,
            "states must have a row for each of the batch");
  return Error::Ok;
}

/// Fills `layer` in, except what only an LSTM has, and sizes `out`.
Error begin(Context& context, const Given& given, int64_t width, const Tensor& out, Layer& layer) {
  for (const Tensor* tensor : {&given.input, &given.state, &given.input_weight, &given.weight}) {
    ETX_CHECK(context, tensor->dim() == (tensor == &given.input ? 3 : 2), InvalidArgument,
              "input must have three dimensions, states and weights two");
    ETX_CHECK(context, tensor->scalar_type() == out.scalar_type(), InvalidArgument, kDtype);
  }
  ETX_CHECK(context, Single::contains(out.scalar_type()), NotSupported,
            "the operator takes float32, float16 and bfloat16");
  const int64_t first = given.input.size(0), second = given.input.size(1);
  layer.is_batch_first = given.is_batch_first, layer.is_reverse = given.is_reverse;
  layer.batch = layer.is_batch_first ? first : second;
  layer.steps = layer.is_batch_first ? second : first;
  layer.inputs = given.input.size(2), layer.states = given.state.size(1), layer.width = width;
  ETX_TRY(check_layer(context, given, layer));
  Shape shape;
  shape.push(first);
  shape.push(second);
  shape.push(layer.states);
  return resize_out(context, out, shape);
}

/// Computes the layer, unless it has no elements.
Error finish(Context& context, const Given& given, const Tensor& out, Layer& layer) {
  constexpr ScalarType as = ScalarType::Float;
  ResultOperand result;
  const float* state;
  ETX_TRY(read_operand(context, given.input, as, layer.x));
  ETX_TRY(read_operand(context, given.state, as, state));
  ETX_TRY(read_operand(context, given.input_weight, as, layer.input_weight));
  ETX_TRY(read_operand(context, given.weight, as, layer.weight));
  ETX_TRY(read_operand(context, given.input_bias, as, layer.input_bias));
  ETX_TRY(read_operand(context, given.bias, as, layer.bias));
  ETX_TRY(result.prepare(context, out, as));
  layer.y = result.data<float>();
  if (out.numel() == 0) return Error::Ok;
  layer.plan(context);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, layer.floats(), "not enough temporary memory for the gates"));
  layer.place(memory);
  const auto bytes = static_cast<size_t>(layer.batch * layer.states) * sizeof(float);
  std::memcpy(layer.h, state, bytes);
  ETX_TRY(layer.run(context));
  return result.finish(context, out);
}

/// y[t] = h = o tanh(c), c = f c + i g, or what `projection` makes of this h.
Error lstm_out(Context& context, const Tensor& input, const Tensor& state, const Tensor& cells,
               const Tensor& input_weight, const Tensor& weight,
               const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
               const std::optional<Tensor>& projection, bool is_batch_first, bool is_reverse,
               Tensor& out0, Tensor& out1) {
  const Given given{input,      state, input_weight,   weight,
                    input_bias, bias,  is_batch_first, is_reverse};
  ETX_CHECK(context, cells.dim() == 2, InvalidArgument, "the cells must have two dimensions");
  Layer layer;
  layer.cell = Cell::Lstm;
  ETX_TRY(begin(context, given, cells.size(1), out0, layer));
  const bool fits = projection.has_value()
                        ? projection->dim() == 2 && projection->size(0) == layer.states &&
                              projection->size(1) == layer.width
                        : layer.states == layer.width;
  ETX_CHECK(context, fits && cells.size(0) == layer.batch, InvalidArgument,
            "cells and projection must fit the state");
  const ScalarType type = out0.scalar_type();
  ETX_CHECK(context,
            cells.scalar_type() == type && out1.scalar_type() == type &&
                (!projection.has_value() || projection->scalar_type() == type),
            InvalidArgument, kDtype);
  ETX_TRY(resize_out(context, out1, Shape(cells)));
  constexpr ScalarType as = ScalarType::Float;
  ResultOperand last;
  const float* first;
  ETX_TRY(read_operand(context, cells, as, first));
  ETX_TRY(read_operand(context, projection, as, layer.projection));
  ETX_TRY(last.prepare(context, out1, as));
  layer.c = last.data<float>();
  if (cells.numel() == 0) return Error::Ok;
  std::memmove(layer.c, first, static_cast<size_t>(cells.numel()) * sizeof(float));
  ETX_TRY(finish(context, given, out0, layer));
  return last.finish(context, out1);
}

/// y[t] = h = z (h - n) + n, n = tanh(input's part + r (the state's part)).
Error gru_out(Context& context, const Tensor& input, const Tensor& state,
              const Tensor& input_weight, const Tensor& weight,
              const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
              bool is_batch_first, bool is_reverse, Tensor& out) {
  const Given given{input,      state, input_weight,   weight,
                    input_bias, bias,  is_batch_first, is_reverse};
  ETX_CHECK(context, state.dim() == 2, InvalidArgument, "the state must have two dimensions");
  Layer layer;
  layer.cell = Cell::Gru;
  ETX_TRY(begin(context, given, state.size(1), out, layer));
  return finish(context, given, out, layer);
}

/// y[t] = h = tanh or relu of the sum of both parts.
Error rnn_out(Context& context, const Tensor& input, const Tensor& state,
              const Tensor& input_weight, const Tensor& weight,
              const std::optional<Tensor>& input_bias, const std::optional<Tensor>& bias,
              bool is_batch_first, bool is_reverse, bool is_relu, Tensor& out) {
  const Given given{input,      state, input_weight,   weight,
                    input_bias, bias,  is_batch_first, is_reverse};
  ETX_CHECK(context, state.dim() == 2, InvalidArgument, "the state must have two dimensions");
  Layer layer;
  layer.cell = is_relu ? Cell::Relu : Cell::Tanh;
  ETX_TRY(begin(context, given, state.size(1), out, layer));
  return finish(context, given, out, layer);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::lstm.out", lstm_out, Single::bits),
    ETX_KERNEL("etx::gru.out", gru_out, Single::bits),
    ETX_KERNEL("etx::rnn.out", rnn_out, Single::bits),
};

}  // namespace

ETX_KERNEL_TABLE(recurrent_kernels, kRows);

}  // namespace etx::portable
