// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SORT_ROWS_H_
#define ETX_PORTABLE_SORT_ROWS_H_

#include <etx/kernel.h>

#include "ops/index/sort_key.h"

namespace etx::portable {

/// By rising keys.
void sort_items(Item* items, int64_t count);

/// Moves the first `count` elements of each row along `axis`, and their positions; in order when
/// `sorted`. Equal elements keep their order.
/// Errors: InvalidArgument for outs that do not fit, MemoryAllocationFailed.
Error sort_rows(Context& context, const Tensor& self, ssize_t axis, int64_t count, bool descending,
                bool sorted, const Tensor& values, const Tensor& indices);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SORT_ROWS_H_
