// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_RECURRENT_LAYER_H_
#define ETX_PORTABLE_RECURRENT_LAYER_H_

#include <etx/kernel.h>

#include "core/dispatch.h"

namespace etx::portable {

/// float16 and bfloat16 are computed in float32.
using Single = Join<Float32, ReducedFloating>;

enum class Cell : uint8_t { Lstm, Gru, Tanh, Relu };

/// Integers with scales, of which only `Packing` knows.
struct PackedMatrix;

/// A matrix of a layer, and what is added to its products.
struct Matrix {
  int64_t rows = 0, depth = 0;
  const float *floats = nullptr, *bias = nullptr;
  PackedMatrix* packed = nullptr;  ///< Instead of these.
};

/// A matrix as an argument: of floats, scales are not read.
struct GivenMatrix {
  Tensor weight, scales;
  const std::optional<Tensor>& bias;
};

/// What reads and multiplies packed integers: a linker drops it where all are floats.
struct Packing {
  int64_t unit;  ///< Rows that are multiplied end with zeros up to a multiple of it.
  Error (*read)(Context& context, const GivenMatrix& given, Matrix& matrix);
  /// to = from matrix^T + bias for `rows` rows.
  void (*multiply)(Context& context, const Matrix& matrix, const float* from, int64_t rows,
                   int64_t to_pitch, float* to);
};

/// The arguments that all cells have.
struct Given {
  Tensor input, state;
  GivenMatrix input_weight, weight;
  bool is_batch_first, is_reverse;
  const Packing* packing = nullptr;  ///< None: weights are floats.
};

/// Sizes results and computes the layer. Errors: InvalidArgument, NotSupported,
/// MemoryAllocationFailed.
Error run_lstm(Context& context, const Given& given, const Tensor& cells,
               const std::optional<Tensor>& projection,
               const std::optional<Tensor>& projection_scales, const Tensor& out0,
               const Tensor& out1);
Error run_of_one_state(Context& context, const Given& given, Cell cell, const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_RECURRENT_LAYER_H_
