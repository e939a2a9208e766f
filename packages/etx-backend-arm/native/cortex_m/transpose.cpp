// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/operands.h"

namespace etx::cortex_m {
namespace {

/// A dimension of `out`: its size, and how far its elements are from each other in both.
struct Direction {
  ssize_t size, from, to;
};

/// Makes one direction of neighbours that are passed as one, and the longest one the last. The
/// order of directions changes nothing.
void arrange(Direction (&directions)[kMostRank]) {
  Direction* longest = directions;
  for (Direction* each = directions + 1; each != directions + kMostRank; ++each) {
    Direction& before = each[-1];
    if (before.from == each->size * each->from && before.to == each->size * each->to) {
      each->size *= before.size;
      before = {1, 0, 0};
    }
  }
  for (Direction& each : directions) longest = each.size > longest->size ? &each : longest;
  const Direction last = *longest;
  *longest = directions[kMostRank - 1];
  directions[kMostRank - 1] = last;
}

/// The last two of kMostRank dimensions are loops, the others a counter.
void move(const int8_t* from, const Direction* directions, int8_t* to) {
  constexpr ssize_t kOuter = kMostRank - 2;
  const Direction row = directions[kOuter], point = directions[kOuter + 1];
  ssize_t index[kOuter] = {};
  for (ssize_t left = kOuter; left >= 0;) {
    const int8_t* x = from;
    int8_t* y = to;
    for (ssize_t i = 0; i < row.size; ++i, x += row.from, y += row.to) {
      const int8_t* source = x;
      int8_t* target = y;
      for (ssize_t j = point.size; j > 0; --j, source += point.from, target += point.to) {
        *target = *source;
      }
    }
    for (left = kOuter - 1; left >= 0; --left) {
      const Direction& outer = directions[left];
      from += outer.from;
      to += outer.to;
      if (++index[left] < outer.size) break;
      from -= outer.size * outer.from;
      to -= outer.size * outer.to;
      index[left] = 0;
    }
  }
}

Error transpose_out(Context& context, const Tensor& input, IntList perm, Tensor& out) {
  const ssize_t rank = input.dim();
  ETX_CHECK(context,
            is_int8(input) && is_int8(out) && rank > 0 && rank <= kMostRank && out.dim() == rank,
            InvalidArgument, "input and out must be int8 of the same rank, at most 8");
  ETX_CHECK(context, perm.size() == static_cast<size_t>(rank), InvalidArgument,
            "perm must have a number for each dimension");
  Direction directions[kMostRank];
  for (Direction& each : directions) each = {1, 0, 0};
  Direction* const last = directions + (kMostRank - rank);
  uint32_t seen = 0;
  for (ssize_t i = 0; i < rank; ++i) {
    int64_t dim = perm[static_cast<size_t>(i)];
    if (dim < 0) dim += rank;
    const bool is_new = dim >= 0 && dim < rank && (seen >> dim & 1) == 0;
    ETX_CHECK(context, is_new, InvalidArgument, "perm must name each dimension once");
    seen |= 1u << dim;
    const auto at = static_cast<ssize_t>(dim);
    last[i] = {input.size(at), input.stride(at), out.stride(i)};
    ETX_CHECK(context, out.size(i) == input.size(at), InvalidArgument,
              "out must have the sizes of input in the order of perm");
  }
  if (out.numel() == 0) return Error::Ok;
  arrange(directions);
  move(input.const_data_ptr<int8_t>(), directions, out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::transpose.out", transpose_out)};

}  // namespace

ETX_KERNEL_TABLE(transpose_kernels, kRows);

}  // namespace etx::cortex_m
