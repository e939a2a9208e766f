// SPDX-License-Identifier: BSD-3-Clause
#include "ops/linalg/recurrent_layer.h"

#include <cstring>

#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/linalg/gemm.h"

namespace etx::portable {
namespace {

constexpr char kWrongWeights[] =
    "weights must have a row for each gate of each cell, and the columns of input and of the "
    "state; a projection those of the cells";

/// Rows of the input that are multiplied at a time.
constexpr int64_t kRowsAtOnce = kIsSmall ? 1 : 256;

constexpr const char* kDtype = "all tensors must have the same dtype";

/// One layer, in one direction: y[t] = h = cell(input[t] input_weight^T + input_bias,
/// h weight^T + bias). Rows of gates are `width` x 4 (LSTM: input, forget, cell, output), x 3 (GRU:
/// reset, update, new) or x 1.
struct Layer {
  Cell cell;
  int64_t steps, batch, inputs, states, width;
  Matrix input_weight, weight;
  Matrix projection;  ///< Of an LSTM: states x width, else without rows.
  const Packing* packing;
  int64_t input_pitch, state_pitch, cell_pitch;  ///< Floats between rows, which end with zeros.
  const float* x;
  float *h, *y;
  float* projected;           ///< What is projected to h, or h.
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
  int64_t pitch(int64_t depth) const {
    return packing == nullptr ? depth : divide_up(depth, packing->unit) * packing->unit;
  }
  bool gathers() const { return (is_batch_first && batch > 1) || input_pitch != inputs; }
  int64_t state_floats() const {
    return batch * (state_pitch + (projection.rows == 0 ? 0 : cell_pitch));
  }
  int64_t floats() const {
    const int64_t rows = at_once() * batch;
    return state_floats() + batch * lines() + packed + rows * lines() +
           (gathers() ? rows * input_pitch : 0);
  }
  void place(float* memory) {
    h = memory, projected = projection.rows == 0 ? h : h + batch * state_pitch;
    sums = h + state_floats(), panels = sums + batch * lines();
    gates = panels + packed, gathered = gates + at_once() * batch * lines();
  }
  void plan(const Context& context) {
    input_pitch = pitch(inputs), state_pitch = pitch(states), cell_pitch = pitch(width);
    const int64_t tile = isa().tile_columns;
    threads = useful_threads(context, Checked(batch) * states * lines() * kReadCost);
    if (packing == nullptr && batch > dot_rows())
      packed = divide_up(batch, tile) * tile * max(states, width);
  }

  /// to = from m^T + bias for the rows of the batch.
  void multiply(Context& context, const float* from, const Matrix& m, int64_t to_pitch,
                float* to) const {
    const int64_t depth = m.depth, count = m.rows;
    if (packing != nullptr) {
      return packing->multiply(context, m, from, batch, to_pitch, to);
    }
    if (packed != 0) {
      const int64_t tile = isa().tile_columns;
      isa().pack_transposed(from, depth, batch, depth, panels);
      Gemm g;
      g.a = m.floats, g.a_stride = depth;
      g.b = panels, g.b_stride = tile, g.panel_stride = tile * depth;
      g.bias = m.bias;
      g.c = to, g.c_stride = to_pitch, g.store = Gemm::Store::Transposed;
      g.depth = depth, g.row_end = count, g.column_end = batch;
      g.column_block = column_block(4 * depth);
      run_gemm(context, g, threads);
      return;
    }
    Gemv d;
    d.x = from, d.x_stride = depth, d.rows = batch;
    d.w = m.floats, d.w_stride = depth, d.depth = depth;
    d.bias = m.bias, d.y = to, d.y_stride = to_pitch;
    context.parallel_for(0, count, divide_up(count, threads), [&](int64_t begin, int64_t end) {
      Gemv part = d;
      part.begin = begin, part.end = end;
      isa().gemv(part);
    });
  }

  /// The new state of one row, whose gates `g` and `s` make.
  void update(float* g, const float* s, float* cells, float* state) const {
    const auto n = static_cast<size_t>(width);
    const Isa& f = isa();
    if (cell == Cell::Lstm) {
      f.add(g, s, g, 4 * n);
      f.sigmoid(g, g, 2 * n);
      f.tanh(g + 2 * n, g + 2 * n, n);
      f.sigmoid(g + 3 * n, g + 3 * n, n);
      f.mul(g, g + 2 * n, g, n);
      f.mul(g + n, cells, cells, n);
      f.add(cells, g, cells, n);
      f.tanh(cells, g, n);
      f.mul(g + 3 * n, g, state, n);
    } else if (cell == Cell::Gru) {
      f.add(g, s, g, 2 * n);
      f.sigmoid(g, g, 2 * n);
      f.mul(s + 2 * n, g, g, n);
      f.add(g + 2 * n, g, g, n);
      f.tanh(g, g, n);
      f.sub(state, g, state, n);
      f.mul(state, g + n, state, n);
      f.add(state, g, state, n);
    } else {
      f.add(g, s, state, n);
      (cell == Cell::Tanh ? f.tanh : f.relu)(state, state, n);
    }
  }

  void step(Context& context, int64_t t, float* g) const {
    multiply(context, h, weight, lines(), sums);
    for (int64_t n = 0; n < batch; ++n) {
      float* const cells = cell == Cell::Lstm ? c + n * width : nullptr;
      update(g + n * lines(), sums + n * lines(), cells, projected + n * cell_pitch);
    }
    if (projected != h) multiply(context, projected, projection, state_pitch, h);
    for (int64_t n = 0; n < batch; ++n) {
      copy_row(h + n * state_pitch, states, y + place_of(t, n) * states);
    }
  }

  /// The input of `count` steps from `first` on, a row for each step and each of the batch.
  const float* rows(int64_t first, int64_t count) const {
    if (!gathers()) return x + first * batch * inputs;
    for (int64_t i = 0; i < count * batch; ++i) {
      const int64_t from = place_of(first + i / batch, i % batch);
      float* const to = gathered + i * input_pitch;
      copy_row(x + from * inputs, inputs, to);
      for (int64_t k = inputs; k < input_pitch; ++k) to[k] = 0;
    }
    return gathered;
  }

  Error run(Context& context, const float* state) const {
    std::memset(h, 0, static_cast<size_t>(state_floats()) * sizeof(float));
    for (int64_t n = 0; n < batch; ++n) copy_row(state + n * states, states, h + n * state_pitch);
    for (int64_t done = 0; done < steps;) {
      const int64_t count = min(at_once(), steps - done);
      const int64_t first = is_reverse ? steps - done - count : done;
      const float* const from = rows(first, count);
      if (packing == nullptr) {
        ETX_TRY(multiply_transposed(context, from, input_weight.floats, input_weight.bias, gates,
                                    count * batch, inputs, lines()));
      } else {
        packing->multiply(context, input_weight, from, count * batch, lines(), gates);
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t t = is_reverse ? count - 1 - i : i;
        step(context, first + t, gates + t * batch * lines());
      }
      done += count;
    }
    return Error::Ok;
  }

 private:
  static void copy_row(const float* from, int64_t count, float* to) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
  /// Which row of the input and of the result the batch's row `n` at step `t` is.
  int64_t place_of(int64_t t, int64_t n) const {
    return is_batch_first ? n * steps + t : t * batch + n;
  }
};

/// `read` of a float matrix.
Error read_floats(Context& context, const GivenMatrix& given, ScalarType type, Matrix& matrix) {
  const Tensor& weight = given.weight;
  ETX_CHECK(context,
            weight.dim() == 2 && weight.size(0) == matrix.rows && weight.size(1) == matrix.depth,
            InvalidArgument, kWrongWeights);
  ETX_CHECK(context, weight.scalar_type() == type, InvalidArgument, kDtype);
  const std::optional<Tensor>& bias = given.bias;
  if (bias.has_value()) {
    ETX_CHECK(context, bias->dim() == 1 && bias->size(0) == matrix.rows, InvalidArgument,
              "a bias must have an element for each row of the weights");
    ETX_CHECK(context, bias->scalar_type() == type, InvalidArgument, kDtype);
  }
  ETX_TRY(read_operand(context, weight, ScalarType::Float, matrix.floats));
  return read_operand(context, bias, ScalarType::Float, matrix.bias);
}

Error read_matrix(Context& context, const Given& given, const GivenMatrix& from, int64_t rows,
                  int64_t depth, Matrix& matrix) {
  matrix.rows = rows, matrix.depth = depth;
  if (given.packing != nullptr) return given.packing->read(context, from, matrix);
  return read_floats(context, from, given.input.scalar_type(), matrix);
}

/// Resizes `out`, the result of `input`; while a method is loaded, where sizes do not change.
Error set_sizes(Context& context, const Tensor& input, const Tensor& out, const Shape& shape) {
  const bool known = context.has_sizes(input) && context.has_sizes(out);
  return known ? resize_out(context, out, shape) : Error::Ok;
}

/// Fills `layer` in, except what only an LSTM has, and sizes `out`. `cells` are its, or the state.
Error begin(Context& context, const Given& given, const Tensor& cells, const Tensor& out,
            Layer& layer) {
  const Tensor &input = given.input, &state = given.state;
  ETX_CHECK(context, input.dim() == 3 && state.dim() == 2 && cells.dim() == 2, InvalidArgument,
            "input must have three dimensions, states and cells two");
  const ScalarType type = out.scalar_type();
  ETX_CHECK(
      context,
      input.scalar_type() == type && state.scalar_type() == type && cells.scalar_type() == type,
      InvalidArgument, kDtype);
  layer.packing = given.packing;
  ETX_CHECK(context, given.packing == nullptr ? Single::contains(type) : type == ScalarType::Float,
            NotSupported,
            "the operator takes float32, float16 and bfloat16, of packed weights float32");
  const int64_t first = input.size(0), second = input.size(1);
  layer.is_batch_first = given.is_batch_first, layer.is_reverse = given.is_reverse;
  layer.batch = layer.is_batch_first ? first : second;
  layer.steps = layer.is_batch_first ? second : first;
  layer.inputs = input.size(2), layer.states = state.size(1), layer.width = cells.size(1);
  ETX_CHECK(context, state.size(0) == layer.batch && cells.size(0) == layer.batch, InvalidArgument,
            "states and cells must have a row for each of the batch");
  ETX_TRY(read_matrix(context, given, given.input_weight, layer.lines(), layer.inputs,
                      layer.input_weight));
  ETX_TRY(read_matrix(context, given, given.weight, layer.lines(), layer.states, layer.weight));
  Shape shape(input);
  shape[2] = layer.states;
  return set_sizes(context, input, out, shape);
}

/// Computes the layer, unless it has no elements.
Error finish(Context& context, const Given& given, const Tensor& out, Layer& layer) {
  constexpr ScalarType as = ScalarType::Float;
  ResultOperand result;
  const float* state;
  ETX_TRY(read_operand(context, given.input, as, layer.x));
  ETX_TRY(read_operand(context, given.state, as, state));
  ETX_TRY(result.prepare(context, out, as));
  layer.y = result.data<float>();
  if (out.numel() == 0) return Error::Ok;
  layer.plan(context);
  ETX_ASSIGN(float* const memory,
             scratch<float>(context, layer.floats(), "not enough temporary memory for the gates"));
  layer.place(memory);
  ETX_TRY(layer.run(context, state));
  return result.finish(context, out);
}

}  // namespace

Error run_lstm(Context& context, const Given& given, const Tensor& cells,
               const std::optional<Tensor>& projection,
               const std::optional<Tensor>& projection_scales, const Tensor& out0,
               const Tensor& out1) {
  Layer layer;
  layer.cell = Cell::Lstm;
  ETX_TRY(begin(context, given, cells, out0, layer));
  ETX_CHECK(context, projection.has_value() == projection_scales.has_value(), InvalidArgument,
            "a packed projection must have scales");
  if (projection.has_value()) {
    ETX_TRY(read_matrix(context, given, {*projection, *projection_scales, {}}, layer.states,
                        layer.width, layer.projection));
  } else {
    ETX_CHECK(context, layer.states == layer.width, InvalidArgument,
              "the state must have the columns of the cells");
  }
  ETX_CHECK(context, out1.scalar_type() == out0.scalar_type(), InvalidArgument, kDtype);
  ETX_TRY(set_sizes(context, cells, out1, Shape(cells)));
  if (context.is_loading()) return Error::Ok;
  constexpr ScalarType as = ScalarType::Float;
  ResultOperand last;
  const float* first;
  ETX_TRY(read_operand(context, cells, as, first));
  ETX_TRY(last.prepare(context, out1, as));
  layer.c = last.data<float>();
  if (cells.numel() == 0) return Error::Ok;
  std::memmove(layer.c, first, static_cast<size_t>(cells.numel()) * sizeof(float));
  ETX_TRY(finish(context, given, out0, layer));
  return last.finish(context, out1);
}

Error run_of_one_state(Context& context, const Given& given, Cell cell, const Tensor& out) {
  Layer layer;
  layer.cell = cell;
  ETX_TRY(begin(context, given, given.state, out, layer));
  return context.is_loading() ? Error::Ok : finish(context, given, out, layer);
}

}  // namespace etx::portable
