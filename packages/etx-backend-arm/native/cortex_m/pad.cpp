// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "cortex_m/families.h"

namespace etx::cortex_m {
namespace {

/// Whether the paddings of a tensor are (images, height, width, channels): by ExecuTorch's rule
/// where the sizes leave the order of memory open.
bool has_channels_last(const Tensor& input) {
  if (input.dim() != 4) return false;
  if (input.size(1) == 1 || (input.size(2) == 1 && input.size(3) == 1)) return true;
  return input.impl()->dim_order[1] == 2;
}

/// A dimension of both tensors.
struct Side {
  int64_t size, before, from, to;
};

void copy(const Side (&sides)[4], const int8_t* from, int8_t* to) {
  const Side& row = sides[3];
  const bool is_dense = row.from == 1 && row.to == 1;
  for (const Side& side : sides) to += side.before * side.to;
  for (int64_t a = 0; a < sides[0].size; ++a) {
    for (int64_t b = 0; b < sides[1].size; ++b) {
      for (int64_t c = 0; c < sides[2].size; ++c) {
        const int8_t* const x = from + a * sides[0].from + b * sides[1].from + c * sides[2].from;
        int8_t* const y = to + a * sides[0].to + b * sides[1].to + c * sides[2].to;
        if (is_dense) {
          memcpy(y, x, static_cast<size_t>(row.size));
        } else {
          for (int64_t d = 0; d < row.size; ++d) y[d * row.to] = x[d * row.from];
        }
      }
    }
  }
}

Error pad_out(Context& context, const Tensor& input, IntList before, IntList after, int64_t value,
              Tensor& out) {
  ETX_CHECK(context,
            input.scalar_type() == ScalarType::Char && out.scalar_type() == ScalarType::Char &&
                input.dim() <= 4 && out.dim() == input.dim(),
            InvalidArgument, "input and out must be int8 of the same rank, at most 4");
  ETX_CHECK(context, before.size() == 4 && after.size() == 4, InvalidArgument,
            "pre_pad and post_pad must have 4 numbers");
  ETX_CHECK(context, value >= -128 && value <= 127, InvalidArgument, "pad_value must be of int8");
  constexpr int kPlaces[2][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}};
  const int* const place = kPlaces[has_channels_last(input) ? 1 : 0];
  const auto absent = static_cast<int>(4 - input.dim());
  Side sides[4] = {{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}};
  for (int i = 0; i < 4; ++i) {
    const int d = i < absent ? -1 : static_cast<int>(out.impl()->dim_order[i - absent]);
    const auto at = static_cast<size_t>(place[d < 0 ? i : d + absent]);
    ETX_CHECK(context,
              before[at] >= 0 && after[at] >= 0 && before[at] <= INT32_MAX &&
                  after[at] <= INT32_MAX && (d >= 0 || before[at] + after[at] == 0),
              InvalidArgument, "pre_pad and post_pad must not be negative, nor beyond the rank");
    if (d < 0) continue;
    sides[i] = {input.size(d), before[at], input.stride(d), out.stride(d)};
    ETX_CHECK(context, out.size(d) == sides[i].size + before[at] + after[at], InvalidArgument,
              "out must have the padded sizes");
  }
  memset(out.mutable_data_ptr<int8_t>(), static_cast<int>(value), static_cast<size_t>(out.numel()));
  copy(sides, input.const_data_ptr<int8_t>(), out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::pad.out", pad_out)};

}  // namespace

ETX_KERNEL_TABLE(pad_kernels, kRows);

}  // namespace etx::cortex_m
