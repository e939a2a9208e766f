// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ISA_H_
#define ETX_PORTABLE_ISA_H_

#include <cstddef>
#include <cstdint>

namespace etx::portable {

/// The float32 inner loops of this library at one instruction-set level.
///
/// `isa_level.cpp` is compiled once per level and fills one table each; `isa()` picks the best one
/// that the processor runs. All pointers are to floats without alignment demands. An output may be
/// one of the inputs, otherwise arrays must not overlap.

/// y[i] = f(x[i]).
using UnaryLoop = void (*)(const float* x, float* y, size_t n);
/// y[i] = f(a[i], b[i]).
using BinaryLoop = void (*)(const float* a, const float* b, float* y, size_t n);
/// y[i] = f(a[i], b).
using ScalarLoop = void (*)(const float* a, float b, float* y, size_t n);

/// C = A B + bias, where A is `rows` x `depth` and B `depth` x `columns`; A may lie anywhere, and
/// the rows of B may be addressed through an index. Used by matmul, linear and convolution.
struct Gemm {
  /// How column j of row i is stored. Rows: c[i * c_stride + j]. Transposed: c[j * c_stride + i].
  /// Grid: columns count the points of a box `box`, of which those inside `valid` are stored at
  /// c[i * c_stride + z * step[0] + y * step[1] + x * step[2]].
  enum class Store : uint8_t { Rows, Transposed, Grid };

  const float* a = nullptr;
  int64_t a_stride = 0;              ///< Between rows of A.
  const int32_t* a_index = nullptr;  ///< Where the elements of a row lie; null: next to each other.
  const float* b = nullptr;
  int64_t b_stride = 0;              ///< Between rows of B.
  const int32_t* b_index = nullptr;  ///< Where row k of B begins; null: k * b_stride.
  /// Between panels of `Isa::tile_columns` columns; equal to that where B is read in place.
  int64_t panel_stride = 0;
  const float* bias = nullptr;  ///< One per row; null: zero.
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t depth = 0;
  int64_t row_begin = 0, row_end = 0;
  /// Panels are read to their full width: up to `tile_columns - 1` floats past `column_end`.
  /// `column_begin` is a multiple of `tile_columns`.
  int64_t column_begin = 0, column_end = 0;
  /// Columns handled before the next rows are; a multiple of `tile_columns`.
  int64_t column_block = 0;
  /// Where rows of A are gathered: `tile_rows * scratch_stride(depth)` floats. Null: not gathered;
  /// needed when there is an `a_index`.
  float* scratch = nullptr;
  Store store = Store::Rows;
  int64_t box[2] = {0, 0};       ///< Height and width of the box.
  int64_t valid[3] = {0, 0, 0};  ///< Depth, height and width of the part that is stored.
  int64_t step[3] = {0, 0, 0};
};

/// y[i][j] = bias[j] + dot(x[i], w[j]) for few rows of x: w is read once, in place.
struct Dots {
  const float* x = nullptr;
  int64_t x_stride = 0;
  int64_t rows = 0;
  const float* w = nullptr;
  int64_t w_stride = 0;
  int64_t depth = 0;
  int64_t begin = 0, end = 0;  ///< Rows of w.
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
};

struct Isa {
  const char* name;
  int32_t vector_floats;
  int32_t tile_rows;
  int32_t tile_columns;

  UnaryLoop exp, log, tanh, erf, sigmoid, silu, gelu, gelu_tanh;
  UnaryLoop abs, neg, relu, sqrt, rsqrt, reciprocal, square;
  BinaryLoop add, sub, mul, div, maximum, minimum;
  ScalarLoop add_scalar, rsub_scalar, mul_scalar, div_scalar, rdiv_scalar;
  /// y = a + b * scale.
  void (*add_scaled)(const float* a, const float* b, float scale, float* y, size_t n);
  /// NaN stays NaN.
  void (*clamp)(const float* x, float low, float high, float* y, size_t n);

  float (*sum)(const float* x, size_t n);
  /// Sum of (x - center)^2.
  float (*sum_squares)(const float* x, float center, size_t n);
  /// -inf of nothing; NaN when there is one.
  float (*max)(const float* x, size_t n);
  /// +inf of nothing; NaN when there is one.
  float (*min)(const float* x, size_t n);

  void (*softmax_row)(const float* x, float* y, size_t n);
  void (*log_softmax_row)(const float* x, float* y, size_t n);
  /// y = (x - mean) * rstd * weight + bias; weight and bias may be null.
  void (*scale_row)(const float* x, float mean, float rstd, const float* weight, const float* bias,
                    float* y, size_t n);

  /// y = x * scale + shift.
  void (*affine)(const float* x, float scale, float shift, float* y, size_t n);

  void (*gemm)(const Gemm& g);
  void (*dots)(const Dots& d);
  /// panels[p][k][j] = x[(p * tile_columns + j) * stride + k], zero where there is no such row.
  void (*pack_transposed)(const float* x, int64_t stride, int64_t rows, int64_t depth,
                          float* panels);
  /// panels[p][k][j] = b[k * stride + p * tile_columns + j], zero where there is no such column.
  void (*pack_rows)(const float* b, int64_t stride, int64_t columns, int64_t depth, float* panels);
  /// y[q] = bias + sum over t of w[t] * x[q + offset[t]]; writes and reads up to
  /// `vector_floats - 1` more than `n`.
  void (*taps)(const float* x, const int32_t* offset, const float* w, int64_t taps, float bias,
               float* y, int64_t n);
  /// y[q] = the largest x[q + offset[t]] and tap[q] the first such t, or the last NaN; writes and
  /// reads like `taps`.
  void (*max_taps)(const float* x, const int32_t* offset, int64_t taps, float* y, int32_t* tap,
                   int64_t n);
  /// For each of `lines`: `left` times `fill`, then `count` floats of x that lie `step` apart, then
  /// `fill` up to `length`. Lines of x lie `stride` apart, those of y follow each other.
  void (*pad_lines)(const float* x, int64_t stride, int64_t lines, int64_t left, int64_t count,
                    int64_t step, float fill, float* y, int64_t length);
};

/// Floats between gathered rows of A: an odd number of cache lines.
constexpr int64_t scratch_stride(int64_t depth) { return (((depth + 15) / 16) | 1) * 16; }

/// The best table for this processor. ETX_KERNELS_ISA in the environment ("base", "v3", "v4") asks
/// for a lower one where there are several.
const Isa& isa();

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ISA_H_
