// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_PAIRING_H_
#define ETX_PORTABLE_PAIRING_H_

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/min_max.h"
#include "core/shape.h"
#include "ops/index/index_plan.h"

namespace etx::portable {

/// Element k of a block lies at `base + offsets[k]` of target and at `other + k * stride` of other.
struct Block {
  int64_t n;
  int64_t base;
  const int64_t* offsets;
  int64_t other;
  int64_t stride;
};

/// The elements of `index` paired with those of `other` at the same position and with those of
/// `target` at that position, except dimension `axis`, where the index says which.
struct Pairing {
  static constexpr int64_t kBlock = 128;

  Tensor index;
  Tensor target;
  ssize_t axis = 0;
  Nest<3> nest;  // strides of index, target (axis: 0) and other
  int64_t inner[3];
  int64_t length;

  Pairing(const Tensor& index_, const Tensor& target_, ssize_t axis_, const Tensor& other)
      : index(index_), target(target_), axis(axis_), inner{}, length(1) {
    const ssize_t other_rank = other.impl() == nullptr ? 0 : other.dim();
    for (ssize_t d = index.dim() - 1; d >= 0; --d) {
      const int64_t strides[3] = {index.stride(d), d == axis ? 0 : target.stride(d),
                                  d < other_rank ? other.stride(d) : 0};
      nest.push(index.size(d), strides);
    }
    if (nest.levels > 0) {
      length = nest.size[0];
      for (int t = 0; t < 3; ++t) inner[t] = nest.stride[0][t];
    }
  }

  /// Calls `body(block)` for blocks of the rows [begin, end). False when an index is outside of
  /// target.
  template <typename Body>
  bool run(int64_t begin, int64_t end, const Body& body) const {
    const int64_t size = size_of(target, axis);
    const int64_t scale = stride_of(target, axis);
    bool inside = true;
    nest.for_each_outer(begin, end, [&](const int64_t* at) {
      int64_t offsets[kBlock];
      for (int64_t j = 0; j < length && inside; j += kBlock) {
        const int64_t n = min(length - j, kBlock);
        inside = read_indices(index, at[0] + j * inner[0], inner[0], n, size, false, offsets);
        if (!inside) return;
        if (scale != 1 || inner[1] != 0) {
          for (int64_t k = 0; k < n; ++k) offsets[k] = offsets[k] * scale + k * inner[1];
        }
        body(Block{n, at[1] + j * inner[1], offsets, at[2] + j * inner[2], inner[2]});
      }
    });
    return inside;
  }
};

/// What gather and the scatters ask of `index`: a position in `self` for each of its elements.
Error check_pairing(Context& context, const Tensor& self, const Tensor& index, ssize_t axis,
                    const Tensor& out);

}  // namespace etx::portable

#endif  // ETX_PORTABLE_PAIRING_H_
