// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_COLUMNS_H_
#define ETX_PORTABLE_COLUMNS_H_

#include "isa/integer/integer.h"

namespace etx::portable {

/// What belongs to the columns of a product to float: scales and sums are (groups, columns), rows
/// `stride` apart.
struct FloatColumns {
  const float* scales = nullptr;
  const float* bias = nullptr;
  const int32_t* sums = nullptr;
  int64_t stride = 0;
};

/// A last block that only part of the columns is left for.
struct LastBlock {
  FloatColumns operands;  ///< Filled up with zeros.
  int64_t index = INT64_MAX;
  int64_t weight = 0;  ///< Bytes before its weight.
};

inline void set_sums(const int32_t* sums, Product& p) { p.sums = sums; }
inline void set_sums(const int32_t*, FloatProduct&) {}

template <typename P>
void set_operands(const FloatColumns& operands, P& p) {
  p.scale = operands.scales;
  p.bias = operands.bias;
  p.group_stride = operands.stride;
  set_sums(operands.sums, p);
}

/// Calls `multiply`, and apart for a last block, so that operands are readable up to a whole block.
template <typename P>
void multiply_columns(P p, const LastBlock& last, void (*multiply)(const P&)) {
  if (p.end <= last.index) return multiply(p);
  p.end = last.index;
  if (p.begin < p.end) multiply(p);
  const int64_t column = last.index * kBlockColumns;
  p.weight += last.weight;
  p.y += column;
  p.columns -= column;
  p.begin = 0;
  p.end = 1;
  set_operands(last.operands, p);
  multiply(p);
}

}  // namespace etx::portable

#endif  // ETX_PORTABLE_COLUMNS_H_
