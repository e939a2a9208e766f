// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_WINDOW_SHAPE_H_
#define ETX_PORTABLE_WINDOW_SHAPE_H_

#include <etx/kernel.h>

#include "isa/integer/integer.h"

namespace etx::portable {

/// The lists that say how a window moves over an input (N, H, W, C); an empty list is all ones, or
/// no padding.
struct WindowLists {
  IntList kernel_size, stride, padding, dilation, spacing;
};

/// Checks them and sets the sizes of `window`; `pixel` and `channels` to C.
Error read_window(Context& context, const Tensor& input, const WindowLists& lists, Window& window);

/// Makes `out` (N, OH, OW, channels).
Error resize_window_out(Context& context, const Tensor& input, const Window& window,
                        int64_t channels, const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_WINDOW_SHAPE_H_
