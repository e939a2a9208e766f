// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/operands.h"

namespace etx::cortex_m {
namespace {

constexpr ssize_t kMostRank = 8;

/// A dimension of `out`: its size, and how far its elements are from each other in both.
struct Direction {
  int64_t size, from, to;
};

/// `rank` is above 0.
void move(const int8_t* from, const Direction* directions, ssize_t rank, int8_t* to) {
  const Direction& first = directions[0];
  for (int64_t i = 0; i < first.size; ++i, from += first.from, to += first.to) {
    if (rank == 1) {
      *to = *from;
    } else {
      move(from, directions + 1, rank - 1, to);
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
  uint32_t seen = 0;
  for (ssize_t i = 0; i < rank; ++i) {
    int64_t dim = perm[static_cast<size_t>(i)];
    if (dim < 0) dim += rank;
    const bool is_new = dim >= 0 && dim < rank && (seen >> dim & 1) == 0;
    ETX_CHECK(context, is_new, InvalidArgument, "perm must name each dimension once");
    seen |= 1u << dim;
    const auto at = static_cast<ssize_t>(dim);
    directions[i] = {input.size(at), input.stride(at), out.stride(i)};
    ETX_CHECK(context, out.size(i) == input.size(at), InvalidArgument,
              "out must have the sizes of input in the order of perm");
  }
  move(input.const_data_ptr<int8_t>(), directions, rank, out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::transpose.out", transpose_out)};

}  // namespace

ETX_KERNEL_TABLE(transpose_kernels, kRows);

}  // namespace etx::cortex_m
