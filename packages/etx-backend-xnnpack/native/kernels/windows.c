// SPDX-License-Identifier: BSD-3-Clause
/// Where the windows of max pools lie. A tap beyond the image is to read one of its window that is
/// inside. XNNPACK 2024-11 takes one that may be beyond the other border where a kernel is dilated,
/// in one axis at least: after an image, or in another window. A linker puts this function in the
/// place of XNNPACK's (--wrap).

#include <stddef.h>
#include <stdint.h>
#include <xnnpack/indirection.h>
#include <xnnpack/operator.h>

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
