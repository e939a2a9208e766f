// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_COLUMNS_H_
#define ETX_PORTABLE_COLUMNS_H_

#include "isa/integer/integer.h"

namespace etx::portable {

/// What belongs to the columns of a product to float.
struct FloatColumns {
  const float* scales = nullptr;
  const uint16_t* narrow_scales = nullptr;  ///< In place of `scales`, in bfloat16.
  const float* bias = nullptr;
  const int32_t* sums = nullptr;
};

inline void set_columns(const FloatColumns& columns, Product& p) {
  p.scale = columns.scales;
  p.narrow_scale = columns.narrow_scales;
  p.bias = columns.bias;
  p.sums = columns.sums;
}
inline void set_columns(const FloatColumns& columns, FloatProduct& p) {
  p.scale = columns.scales;
  p.bias = columns.bias;
}

/// The blocks of all columns.
struct Blocks {
  FloatColumns columns;
  int64_t bytes = 0;             ///< Of the weight of one.
  int64_t partial = INT64_MAX;   ///< A last one that only part of the columns is left for.
  FloatColumns partial_columns;  ///< What belongs to it, filled up with zeros.
};

/// Moves the first column of `p` to that of block `index`.
template <typename P>
void begin_at(int64_t index, const Blocks& blocks, P& p) {
  const int64_t column = index * kBlockColumns;
  p.weight += index * blocks.bytes;
  p.y += column;
  p.columns -= column;
  p.begin = 0;
}

/// Calls `multiply`, apart for a partial block, so that operands are readable up to a whole one.
template <typename P>
void multiply_columns(const P& all, const Blocks& blocks, void (*multiply)(const P&)) {
  if (all.end <= blocks.partial) return multiply(all);
  P p = all;
  p.end = blocks.partial;
  if (p.begin < p.end) multiply(p);
  begin_at(blocks.partial, blocks, p);
  p.end = 1;
  set_columns(blocks.partial_columns, p);
  multiply(p);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_COLUMNS_H_
