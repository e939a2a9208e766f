// SPDX-License-Identifier: BSD-3-Clause
/// Where windows lie that XNNPACK 2024-11 places wrongly. A linker puts these functions in the
/// place of XNNPACK's (--wrap).

#include <stddef.h>
#include <stdint.h>
#include <xnnpack/indirection.h>
#include <xnnpack/operator.h>

// A tap of a max pool beyond the image is to read one of its window that is inside. XNNPACK takes
// one that may be beyond the other border where a kernel is dilated, in one axis at least: after an
// image, or in another window.

/// The place of a tap at `at`, or of the nearest one a multiple of `dilation` from it that is in
/// the image: in the same window if that has any. A place in the image where there is none.
static size_t inside(int64_t at, int64_t dilation, int64_t size) {
  if (at < 0) {
    const int64_t rest = -at % dilation, first = rest == 0 ? 0 : dilation - rest;
    return (size_t)(first < size ? first : size - 1);
  }
  if (at < size) return (size_t)at;
  const int64_t last = at - (at - size + dilation) / dilation * dilation;
  return (size_t)(last > 0 ? last : 0);
}

void __wrap_xnn_indirection_init_maxpool2d(xnn_operator_t op, size_t step_height, size_t step_width,
                                           uint32_t log2_element_size);

/// Fills op->indirection_buffer: of output (y, x) tap (i, j) is element
/// y step_height + (x step_width + j) kernel_height + i.
void __wrap_xnn_indirection_init_maxpool2d(xnn_operator_t op, size_t step_height, size_t step_width,
                                           uint32_t log2_element_size) {
  const uintptr_t image = (uintptr_t)op->input;
  const size_t pixel = op->input_pixel_stride << log2_element_size;
  const size_t rows = op->kernel_height, columns = op->kernel_width;
  const int64_t height = (int64_t)op->input_height, width = (int64_t)op->input_width;
  for (size_t y = 0; y < op->output_height; ++y) {
    const int64_t top = (int64_t)(y * op->stride_height) - (int64_t)op->padding_top;
    for (size_t x = 0; x < op->output_width; ++x) {
      const int64_t left = (int64_t)(x * op->stride_width) - (int64_t)op->padding_left;
      const void** to = op->indirection_buffer + y * step_height + x * step_width * rows;
      for (size_t j = 0; j < columns; ++j) {
        const size_t across =
            inside(left + (int64_t)(j * op->dilation_width), op->dilation_width, width);
        for (size_t i = 0; i < rows; ++i) {
          const size_t down =
              inside(top + (int64_t)(i * op->dilation_height), op->dilation_height, height);
          *to++ = (const void*)(image + (down * op->input_width + across) * pixel);
        }
      }
    }
  }
}

// XNNPACK divides a transposed convolution into one for each place of an output in its stride. It
// counts outputs below 0 where a stride is longer than the output: nearly 2^64 of them, which it
// writes.

/// Every stride-th output of a line.
struct outputs {
  size_t first, count;
};

/// The outputs that taps `offset`, `offset` + `stride`... reach.
static struct outputs reached(size_t offset, size_t padding, size_t stride, size_t size) {
  const size_t first = (offset + stride - padding % stride) % stride;
  return (struct outputs){first, first < size ? (size - first + stride - 1) / stride : 0};
}

/// Writes where one tap of a row reads for each output of a tile: columns from `column` on, the
/// last of them again where the line ends. `line` is where the row reads, or 0.
static const void** place_tap(const void** to, xnn_operator_t op, uintptr_t line, size_t pixel,
                              int64_t column, int64_t last, size_t tile) {
  for (size_t i = 0; i < tile; ++i) {
    const int is_inside = line != 0 && column >= 0 && column < (int64_t)op->input_width;
    *to++ = is_inside ? (const void*)(line + (size_t)column * pixel) : op->zero_buffer;
    column += column < last;
  }
  return to;
}

void __wrap_xnn_indirection_init_subconv2d(xnn_operator_t op, size_t tile,
                                           uint32_t log2_element_size);

/// Fills op->indirection_buffer and the places of each part of op->subconvolution_buffer: by rows
/// of outputs, tiles, taps down, taps across, outputs of a tile.
void __wrap_xnn_indirection_init_subconv2d(xnn_operator_t op, size_t tile,
                                           uint32_t log2_element_size) {
  const uintptr_t image = (uintptr_t)op->input;
  const size_t pixel = op->input_pixel_stride << log2_element_size;
  const size_t height = op->stride_height, width = op->stride_width;
  struct subconvolution_params* part = op->subconvolution_buffer;
  const void** to = op->indirection_buffer;
  for (size_t place = 0; place < height * width; ++place, ++part) {
    const size_t down = place / width, across = place % width;
    const struct outputs rows = reached(down, op->padding_top, height, op->output_height);
    const struct outputs columns = reached(across, op->padding_left, width, op->output_width);
    const size_t top = (rows.first + op->padding_top - down) / height;
    const int64_t left = (int64_t)((columns.first + op->padding_left - across) / width);
    part->slice_height = rows.count;
    part->slice_width = columns.count;
    part->indirection_buffer = to;
    part->indirection_y_stride =
        (columns.count + tile - 1) / tile * tile * part->indirection_x_stride;
    for (size_t y = 0; y < rows.count; ++y) {
      for (size_t x = 0; x < columns.count; x += tile) {
        for (size_t i = 0; i * height + down < op->kernel_height; ++i) {
          const size_t row = top + y - i;
          const uintptr_t line = row < op->input_height ? image + row * op->input_width * pixel : 0;
          for (size_t j = 0; j * width + across < op->kernel_width; ++j) {
            const int64_t first = left - (int64_t)j;
            to = place_tap(to, op, line, pixel, first + (int64_t)x,
                           first + (int64_t)columns.count - 1, tile);
          }
        }
      }
    }
  }
}
