// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_CORTEX_M_PRODUCT_H_
#define ETX_CORTEX_M_PRODUCT_H_

#include "cortex_m/fixed_point.h"

namespace etx::cortex_m {

/// A matrix of weights, `channels` rows of `depth` bytes, and what follows its sums.
struct Product {
  const int8_t* weight;
  int32_t depth, channels;
  /// What the sums begin with, and their factors: one for each channel.
  const int32_t *start, *multipliers, *shifts;
  Epilogue epilogue;
};

/// Rows of bytes: where the first is, how many there are, how far they are from each other.
struct Rows {
  const int8_t* first;
  int32_t count, step;
};

/// to[p * to_step + c] = finish(start[c] + sum of x[p][k] * weight[c][k]) for each row p and
/// channel c. Each target has its own; the results are the same to the bit. Sums wrap.
void multiply(const Product& product, const Rows& x, int8_t* to, int32_t to_step);

/// What is added to each byte of x and of the weights.
struct Offsets {
  int32_t x, weight;
};

/// As above, of (x + offsets.x) and (weight + offsets.weight); product.start has what offsets.x
/// adds where the weights have no offset. `start` is memory for a number of each channel.
void multiply(Product product, const Rows& x, Offsets offsets, int32_t* start, int8_t* to);

/// to[c] = (bias, if any)[c] + offset * (sum of weight[c][k]).
void fold_offset(const Product& product, const int32_t* bias, int32_t offset, int32_t* to);

}  // namespace etx::cortex_m

#endif  // ETX_CORTEX_M_PRODUCT_H_
