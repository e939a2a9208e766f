// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/min_max.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/integer/contract.h"
#include "ops/integer/window_shape.h"

namespace etx::portable {
namespace {

struct Depthwise {
  const int8_t* x;
  int8_t* y;
  Window window;
  DepthwiseRow row;  ///< Without what concerns one row.
};

/// Whether two lines of the output are computed at once: what the second one reads lies a line
/// below, and four kernel rows that are multiplied at once leave a place for it.
bool is_paired(const Window& w) {
  return w.kernel[0] % 4 != 0 && w.stride[0] == 1 && w.dilation[0] == 1 && w.out[0] > 1;
}

/// The padded lines of the input that windows read, in a ring: line `y` of the padded input is in
/// place `y % reach`, where it stays until a later one takes the place.
class Lines {
 public:
  /// Bytes of memory for one ring; lost where int64 does not hold them.
  static Checked memory_size(const Window& w) {
    const Checked lines = Checked(reach(w)) * (Checked(points(w)) * w.pixel + kHeader);
    return lines + Checked(kHeader) * rows(w) + kDepthwiseSlack;
  }

  Lines(const Window& w, uint8_t* memory)
      : window_(w),
        places_(reinterpret_cast<const uint8_t**>(memory)),
        held_(reinterpret_cast<int64_t*>(memory) + rows(w)),
        lines_(memory + (rows(w) + reach(w)) * kHeader) {
    for (int64_t i = 0; i < reach(w); ++i) held_[i] = -1;
  }

  /// Pointers to the lines of the kernel rows for `count` output lines of `image` from `oy` on.
  const uint8_t* const* at(const int8_t* image, int64_t oy, int64_t count) {
    const int64_t size = reach(window_), bytes = points(window_) * window_.pixel;
    if (image != image_) {
      for (int64_t i = 0; i < size; ++i) held_[i] = -1;
      image_ = image;
    }
    for (int64_t k = 0; k < window_.kernel[0] + count - 1; ++k) {
      const int64_t y = oy * window_.stride[0] + k * window_.dilation[0];
      uint8_t* const line = lines_ + y % size * bytes;
      if (held_[y % size] != y) fill(image, y - window_.before[0], line);
      held_[y % size] = y;
      places_[k] = line;
    }
    return places_;
  }

 private:
  static constexpr int64_t kHeader = 8;

  /// Kernel rows of the output lines that are computed at once.
  static int64_t rows(const Window& w) { return w.kernel[0] + static_cast<int64_t>(is_paired(w)); }
  static int64_t reach(const Window& w) { return w.dilation[0] * (rows(w) - 1) + 1; }
  /// Points of a padded line.
  static int64_t points(const Window& w) {
    return w.stride[1] * (w.out[1] - 1) + w.dilation[1] * (w.kernel[1] - 1) + 1;
  }

  void fill(const int8_t* image, int64_t y, uint8_t* line) const {
    const int64_t bytes = window_.pixel, all = points(window_);
    const bool inside = y >= 0 && y < window_.in[0];
    const int64_t left = inside ? min(window_.before[1], all) : all;
    const int64_t count = min(all - left, window_.in[1]);
    const int fill = static_cast<uint8_t>(window_.fill) ^ integer().offset;
    memset(line, fill, static_cast<size_t>(left * bytes));
    if (count > 0) {
      integer().flip(image + y * window_.in[1] * bytes, line + left * bytes, count * bytes);
    }
    const int64_t right = all - left - count;
    memset(line + (left + count) * bytes, fill, static_cast<size_t>(right * bytes));
  }

  const Window& window_;
  const uint8_t** places_;
  int64_t* held_;
  uint8_t* lines_;
  const int8_t* image_ = nullptr;
};

void run_lines(const Depthwise& d, Lines& lines, uint8_t* columns, int64_t begin, int64_t end) {
  const Window& w = d.window;
  DepthwiseRow row = d.row;
  row.columns = columns;
  for (int64_t i = begin; i < end; i += row.rows) {
    const int8_t* const image = d.x + i / w.out[0] * w.in[0] * w.in[1] * w.pixel;
    const int64_t y = i % w.out[0];
    row.rows = row.own.paired && y + 1 < w.out[0] && i + 1 < end ? 2 : 1;
    row.lines = lines.at(image, y, row.rows);
    row.out = d.y + i * w.out[1] * w.pixel;
    integer().depthwise(row);
  }
}

Checked whole_lines(Checked bytes) { return (bytes + 63).value_or(-64) / 64 * 64; }

Error run(Context& context, const Depthwise& d, int64_t images) {
  const Window& w = d.window;
  const int64_t all = images * w.out[0];
  const Checked work = Checked(all) * w.out[1] * w.pixel * w.kernel[0] * w.kernel[1];
  const int64_t threads = min(useful_threads(context, work), all);
  const int64_t columns = integer().depthwise_columns(d.row);
  const int64_t lines = whole_lines(Lines::memory_size(w)).value_or(-1);
  ETX_CHECK(context, lines > 0 && columns >= 0, InvalidArgument,
            "the window must not reach over 2^63 numbers");
  ETX_ASSIGN(uint8_t* const memory,
             scratch<uint8_t>(context, ((Checked(columns) + lines) * threads).value_or(-1),
                              "no temporary memory for padded lines"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Part part(all, 1, i, threads);
      uint8_t* const own = memory + i * (columns + lines);
      Lines ring(w, own + columns);
      run_lines(d, ring, own, part.begin, part.end);
    }
  });
  return Error::Ok;
}

/// Each channel with a filter of its own: weight is kernel rows * kernel columns x channels.
Error quantized_depthwise_conv_out(Context& context, const Tensor& input, const Tensor& weight,
                                   const Tensor& weight_sums, std::optional<Tensor> bias,
                                   const Tensor& scale, IntList kernel_size, IntList stride,
                                   IntList padding, IntList dilation, int64_t input_zero_point,
                                   int64_t output_zero_point, int64_t output_min,
                                   int64_t output_max, Tensor& out) {
  Depthwise d;
  Window& w = d.window;
  ETX_TRY(check_input_zero_point(context, input_zero_point));
  ETX_TRY(read_bounds(context, output_zero_point, output_min, output_max, d.row.bounds));
  ETX_TRY(check_int8(context, input, "input must be contiguous int8"));
  ETX_TRY(check_int8(context, weight, "weight must be contiguous int8"));
  ETX_TRY(check_int8(context, out, "out must be contiguous int8"));
  ETX_TRY(read_window(context, input, {kernel_size, stride, padding, dilation, {}}, w));
  const Checked taps = Checked(w.kernel[0]) * w.kernel[1];
  ETX_CHECK(context,
            weight.dim() == 2 && taps.is(weight.size(0)) && weight.size(1) == w.pixel &&
                weight_sums.numel() == w.pixel,
            InvalidArgument,
            "weight must be (kernel rows * kernel columns, C), with C the channels of input");
  ColumnOperands operands;
  ETX_TRY(read_columns(context, weight_sums, bias, scale, w.pixel, 1, weight.size(0),
                       input_zero_point + integer().offset, operands));
  ETX_TRY(resize_window_out(context, input, w, w.pixel, out));
  if (out.numel() == 0 || context.is_loading()) return Error::Ok;
  w.fill = static_cast<int8_t>(input_zero_point);
  d.x = input.const_data_ptr<int8_t>();
  d.y = out.mutable_data_ptr<int8_t>();
  DepthwiseRow& row = d.row;
  row.own = {weight.const_data_ptr<int8_t>(), operands.start, operands.scale, w.pixel,
             {w.kernel[0], w.kernel[1]},      is_paired(w)};
  row.stride = w.stride[1];
  row.dilation = w.dilation[1];
  row.points = w.out[1];
  ETX_ASSIGN(uint8_t* const packed,
             scratch<uint8_t>(context, integer().depthwise_bytes(row.own),
                              "no temporary memory to interleave the weight in"));
  integer().pack_depthwise(row.own, packed);
  row.packed = packed;
  return run(context, d, input.size(0));
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::quantized_depthwise_conv.out", quantized_depthwise_conv_out,
               dtype_bit(ScalarType::Char) | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(quantized_depthwise_conv_kernels, kRows);

}  // namespace etx::portable
