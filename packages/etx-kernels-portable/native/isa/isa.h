// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_ISA_H_
#define ETX_PORTABLE_ISA_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "isa/one_level.h"

namespace etx::portable {

/// The float32 inner loops of this library at one instruction-set level.
///
/// `isa_level.cpp` is compiled once per level and fills one table each; `isa()` picks the best one
/// that the processor runs. All pointers are to floats without alignment demands. An output may be
/// one of the inputs, otherwise arrays must not overlap.

/// Firmware, where code is dearer than time.
#if defined(ETX_ONE_LEVEL)
constexpr bool kIsSmall = true;
#else
constexpr bool kIsSmall = false;
#endif

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
  const uint16_t* a_half = nullptr;  ///< A in bfloat16, in place of `a`: rows are gathered.
  bool of_pairs = false;  ///< Elements of A and B are pairs of bfloat16: a product for `pairs()`.
  int64_t a_stride = 0;   ///< Between rows of A.
  const int32_t* a_index = nullptr;  ///< Where the elements of a row lie; null: next to each other.
  const float* b = nullptr;
  int64_t b_stride = 0;              ///< Between rows of B.
  const int32_t* b_index = nullptr;  ///< Where row k of B begins; null: k * b_stride.
  /// Between panels of `Isa::tile_columns` columns; equal to that where B is read in place.
  int64_t panel_stride = 0;
  /// The last panel, if it is a partial one, whose rows are `tile_columns` apart; null: it follows
  /// the others.
  const float* tail = nullptr;
  const float* bias = nullptr;  ///< One per row; null: zero.
  /// One per column, whole panels of them, instead of one per row; null: none.
  const float* column_bias = nullptr;
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
  /// needed when there is an `a_index` or `a_half`.
  float* scratch = nullptr;
  Store store = Store::Rows;
  int64_t box[2] = {0, 0};       ///< Height and width of the box.
  int64_t valid[3] = {0, 0, 0};  ///< Depth, height and width of the part that is stored.
  int64_t step[3] = {0, 0, 1};
};

/// Consecutive columns of a panel that read `length` floats side by side, the first at `from`.
struct PanelRun {
  int32_t from, length;
};

/// c[i][j] = bias[i] + sum of a[i][k] * panel[k][j] for `columns` <= kPanel<T> columns; kPanel<T>
/// of each row of the panel are read.
template <typename T>
struct Product {
  const T* a = nullptr;
  int64_t a_stride = 0;
  int64_t rows = 0, depth = 0, columns = 0;
  const T* panel = nullptr;
  int64_t panel_stride = 128 / static_cast<int64_t>(sizeof(T));  ///< Between its rows.
  const T* row_bias = nullptr;                                   ///< One per row; null: zero.
  T* c = nullptr;
  int64_t row_step = 0, column_step = 1;  ///< Between elements of c.
};
template <typename T>
constexpr int64_t kPanel = 128 / static_cast<int64_t>(sizeof(T));

/// a b without the int in which C++ would multiply.
template <typename T>
constexpr T times(T a, T b) {
  if constexpr (std::is_same_v<T, uint16_t>) {
    return static_cast<T>(uint32_t{a} * b);
  } else {
    return a * b;
  }
}

/// y[i][j] = bias[j] + dot(x[i], w[j]) for few rows of x: w is read once, in place. What its
/// elements are, the loop knows.
template <typename T>
struct Dots {
  const T* x = nullptr;
  int64_t x_stride = 0;
  int64_t rows = 0;
  const void* w = nullptr;
  int64_t w_stride = 0;
  int64_t depth = 0;
  int64_t begin = 0, end = 0;  ///< Rows of w.
  const T* bias = nullptr;
  T* y = nullptr;
  int64_t y_stride = 0;
};
using Gemv = Dots<float>;

/// y[i][j] = sum of a[i][k] * b[k][j] for few rows of a: b is read once, in place.
template <typename T>
struct Accumulation {
  const T* a = nullptr;
  int64_t a_stride = 0;
  int64_t rows = 0, depth = 0, columns = 0;
  const void* b = nullptr;
  int64_t b_stride = 0;
  T* y = nullptr;
  int64_t y_stride = 0;
};

/// A depthwise convolution of planes with two axes, vertical and horizontal.
struct Depthwise {
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t taps;
  /// A line of the strip: `phases` runs of `phase` floats; the p-th has every stride[1]-th point
  /// of a padded line from p on.
  int64_t phases, phase;
  int64_t line;            ///< Floats of the strip between what two lines of outputs read.
  const int32_t* offsets;  ///< Of each tap in the strip.
  int64_t lines;           ///< Lines of outputs that a strip serves.
  float* strip;            ///< Zeros at first, with 2 `vector_floats` more behind.
};

/// Lines of `length` floats that lie `from` floats apart, to be made `to` floats apart.
struct FoldedLines {
  int64_t count, length, from, to;
};

/// To which of the whole numbers next to a number; of two that are as near, to the even one.
/// Numbered as processors of x86-64 do it.
enum class Rounding : uint8_t { Nearest, Down, Up, ToZero };

/// scale log(u), where u is x + shift, or (x + shift) / (1 - x); x where that is below `tiny`.
struct Logarithm {
  double shift, scale, tiny;
  bool quotient;
};

/// Of a / b: the rest as `fmod` and as `remainder` have it, and the quotient rounded down.
enum class Rest : uint8_t { OfTrunc, OfFloor, Floor };

struct Isa {
  const char* name;
  LevelNumber vector_floats;
  LevelNumber tile_rows;
  LevelNumber tile_columns;

#define ETX_UNARY(member, function, expected) UnaryLoop member;
#define ETX_BINARY(member, function, expected) BinaryLoop member;
#define ETX_SCALAR(member, function, expected) ScalarLoop member;
#define ETX_LOOP(result, member, parameters) result(*member) parameters;
#include "isa/isa.def"
};

/// Floats between gathered rows of A: an odd number of cache lines.
constexpr int64_t scratch_stride(int64_t depth) { return (((depth + 15) / 16) | 1) * 16; }

#if defined(ETX_ONE_LEVEL)
enum class IsaLoop {
#define ETX_UNARY(member, function, expected) member,
#define ETX_BINARY(member, function, expected) member,
#define ETX_SCALAR(member, function, expected) member,
#define ETX_LOOP(result, member, parameters) member,
#include "isa/isa.def"
};
extern const int32_t isa_vector_floats, isa_tile_rows, isa_tile_columns;

inline constexpr Isa kIsa = {
    "one",
    isa_vector_floats,
    isa_tile_rows,
    isa_tile_columns,
#define ETX_UNARY(member, function, expected) OneLevel<UnaryLoop, IsaLoop::member>::call,
#define ETX_BINARY(member, function, expected) OneLevel<BinaryLoop, IsaLoop::member>::call,
#define ETX_SCALAR(member, function, expected) OneLevel<ScalarLoop, IsaLoop::member>::call,
#define ETX_LOOP(result, member, parameters) \
  OneLevel<Pointer<result parameters>, IsaLoop::member>::call,
#include "isa/isa.def"
};
constexpr const Isa& isa() { return kIsa; }
#else
/// The best table for this processor. ETX_KERNELS_ISA in the environment ("base", "v3", "v4") asks
/// for a lower one where there are several.
const Isa& isa();
#endif

}  // namespace etx::portable

#endif  // ETX_PORTABLE_ISA_H_
