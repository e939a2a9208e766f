// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_H_
#define ETX_PORTABLE_INTEGER_H_

#include <cstddef>
#include <cstdint>

#include "isa/one_level.h"

namespace etx::portable {

/// The inner loops on int8 at one instruction-set level, apart from `Isa`: what matters to them is
/// a dot product of bytes, which levels of float32 do not tell. Integers are the same at each
/// level, and so are floats rounded once; sums of floats are added in the same order.
///
/// A packed weight of N columns and depth K is int8 (ceil(N/16), ceil(K/4), 16, 4), a block of 64
/// bytes the multipliers of 16 columns and 4 of their depth. Of int4 the last dimension holds 8 of
/// depth: 4 in the low nibbles, 4 in the high ones, each plus 8.

constexpr int64_t kBlockColumns = 16;
constexpr int64_t kBlockDepth = 4;
constexpr int64_t kBlockBytes = kBlockColumns * kBlockDepth;

/// What a whole number becomes: within [low, high] after the zero point is added.
struct Bounds {
  int32_t zero_point = 0, low = -128, high = 127;
};

/// How a float row was quantized.
struct RowScale {
  float scale;
  int32_t offset;  ///< Its zero point, with what the level adds to each number.
};

/// The rows of a convolution's matrix: a row is the window of one point of the output, in the order
/// (kernel row, kernel column, channel).
struct Window {
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], spacing[2], before[2];
  int64_t pixel = 0;     ///< Bytes between neighbouring points of the input.
  int64_t channels = 0;  ///< Bytes read of each point.
  int8_t fill = 0;       ///< What lies outside of the input and between its points.
};

/// Rows of int8 on their way into the form that `product` reads.
struct Rows {
  const int8_t* x = nullptr;
  const int8_t* end = nullptr;  ///< Of readable memory behind x.
  int64_t depth = 0;            ///< Bytes of a row.
  int64_t stride = 0;           ///< Between rows; unused with a window.
  const Window* window = nullptr;
};

/// The product of gathered rows and a packed weight.
struct Product {
  const uint8_t* rows = nullptr;
  int64_t row_stride = 0;
  int64_t num_rows = 0;
  const int8_t* weight = nullptr;
  int64_t columns = 0;
  int64_t steps = 0;           ///< Blocks along the depth.
  int64_t begin = 0, end = 0;  ///< Blocks of columns, `begin` a multiple of `panel_blocks`.

  // What sums begin with, and what they are multiplied by: readable up to a whole panel.
  const int32_t* start = nullptr;
  const float* scale = nullptr;

  // To int8.
  int8_t* out = nullptr;
  int64_t out_stride = 0;
  Bounds bounds;

  // To float: y = (sum - offset of the row * sums) * scale * scale of the row + bias. `sums`,
  // `scale` and `bias` are readable up to a whole block; of groups of depth `sums` and `scale` are
  // (blocks of columns, groups, kBlockColumns).
  float* y = nullptr;
  int64_t y_stride = 0;
  const RowScale* row_scales = nullptr;
  const int32_t* sums = nullptr;
  const float* bias = nullptr;
  float least = 0, most = 0;

  int64_t groups = 1, group_steps = 0;     ///< Of depth.
  const uint16_t* narrow_scale = nullptr;  ///< In place of `scale`, in bfloat16.
  const int32_t* group_sums = nullptr;     ///< Of gathered rows, by row and group; of int4 only.

  // Where the level reads taps, to int8: a row is as many runs of `steps / num_taps` blocks, each
  // at an offset of its own. Of each `pitch` rows `line` are stored.
  const int64_t* taps = nullptr;
  int64_t num_taps = 1, line = 1, pitch = 1;
};

/// The product of float rows and a packed weight: y = sum over groups of scale * (x w) + bias.
struct FloatProduct {
  const float* x = nullptr;
  int64_t x_stride = 0;  ///< Rows are readable up to a whole block of depth.
  int64_t num_rows = 0;
  const int8_t* weight = nullptr;
  int64_t columns = 0, steps = 0;
  int64_t begin = 0, end = 0;
  const float* scale = nullptr;  ///< Laid out as that of a `Product` to float, `bias` too.
  const float* bias = nullptr;
  float least = 0, most = 0;
  int64_t groups = 1, group_steps = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
};

/// What belongs to the channels of a depthwise convolution.
struct DepthwiseChannels {
  const int8_t* weight = nullptr;  ///< kernel rows x kernel columns x channels.
  const int32_t* start = nullptr;
  const float* scale = nullptr;
  int64_t channels = 0;
  int64_t kernel[2] = {1, 1};
  bool paired = false;  ///< Packed for two rows of the output, the second one a line below.
};

/// A row of the output of a depthwise convolution, or two where channels are `paired`.
struct DepthwiseRow {
  DepthwiseChannels own;
  const uint8_t* packed = nullptr;        ///< What `pack_depthwise` made.
  uint8_t* columns = nullptr;             ///< `depthwise_columns` bytes for the call.
  const uint8_t* const* lines = nullptr;  ///< Copied by `flip`, for each kernel row of both.
  int64_t stride = 1;                     ///< Points between the windows of neighbouring points.
  int64_t dilation = 1;                   ///< Points between kernel columns.
  int64_t points = 0;
  int64_t rows = 1;
  Bounds bounds;
  int8_t* out = nullptr;
};

/// What may be read behind a line of a depthwise convolution.
constexpr int64_t kDepthwiseSlack = 64;

/// y = (a - a_zero) * a_scale + (b - b_zero) * b_scale, or (a - a_zero) * (b - b_zero) * a_scale.
struct Pair {
  int32_t a_zero = 0, b_zero = 0;
  float a_scale = 1, b_scale = 1;
  Bounds bounds;
};

/// Where a result lies along one dimension: `weight` of `kOne` parts from point `first` to the
/// next.
struct Between {
  int32_t first, weight;
};
constexpr int32_t kOne = 2048;

struct Integer {
  const char* name;
  LevelNumber tile_rows;     ///< Rows that are multiplied at once.
  LevelNumber panel_blocks;  ///< Blocks of columns that are multiplied at once.
  LevelNumber step_bytes;    ///< Bytes that a gathered row has for each block of depth.
  LevelNumber offset;        ///< Added to each number of a gathered row.
  LevelNumber narrow_rows;   ///< Up to as many `float_product_int4` reads `narrow_scale`.
  int32_t reads_taps;        ///< `product` does.

#define ETX_INTEGER(result, member, parameters) result(*member) parameters;
#include "isa/integer/integer.def"
};

/// Bytes between gathered rows: an odd number of cache lines.
inline int64_t gathered_stride(const Integer& level, int64_t steps) {
  return ((steps * level.step_bytes + 63) / 64 | 1) * 64;
}
/// What is read and written behind the last gathered row.
constexpr int64_t kGatheredSlack = 128;

#if defined(ETX_ONE_LEVEL)
enum class IntegerLoop {
#define ETX_INTEGER(result, member, parameters) member,
#include "isa/integer/integer.def"
};
extern const int32_t integer_tile_rows, integer_panel_blocks, integer_step_bytes, integer_offset,
    integer_narrow_rows;

inline constexpr Integer kInteger = {
    "one",
    integer_tile_rows,
    integer_panel_blocks,
    integer_step_bytes,
    integer_offset,
    integer_narrow_rows,
    0,
#define ETX_INTEGER(result, member, parameters) \
  OneLevel<Pointer<result parameters>, IntegerLoop::member>::call,
#include "isa/integer/integer.def"
};
constexpr const Integer& integer() { return kInteger; }
#else
/// The best table for this processor; ETX_KERNELS_ISA asks for a lower one, as for `isa()`, and for
/// those of integers by their names.
const Integer& integer();
#endif

}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_H_
