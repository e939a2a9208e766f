// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PAIRS_H_
#define ETX_PORTABLE_PAIRS_H_

#include <cstdint>

#include "isa/isa.h"

namespace etx::portable {

/// Products of bfloat16, summed in float32 by the processor's dot products of two pairs. A pair of
/// neighbours in depth takes the place of a float: depths and strides count pairs.
struct Pairs {
  /// `Isa::gemm` of pairs.
  void (*gemm)(const Gemm& g);
  /// panel[k / 2][j][k % 2] = b[k * stride + j] for an even depth; zero behind `columns`.
  void (*pack_rows)(const uint16_t* b, int64_t stride, int64_t columns, int64_t pairs,
                    float* panel);
  /// y[i] = the pair of x[i] and next[i], rounded to bfloat16.
  void (*interleave)(const float* x, const float* next, float* y, int64_t n);
  bool in_tiles;  ///< Made sixteen rows by sixteen columns at once.
};

/// By tiles, or by vectors; null where the processor has neither, or slow vectors of them, or
/// ETX_KERNELS_ISA asks for a level. "amx" asks for tiles, "pairs" for vectors, slow ones, too.
const Pairs* pairs();

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PAIRS_H_
