// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "cortex_m/families.h"

namespace etx::cortex_m {
namespace {

/// The paddings are of the last dimensions in the order of memory; of a tensor with channels last
/// they are (images, height, width, channels).
Error pad_out(Context& context, const Tensor& input, IntList before, IntList after, int64_t value,
              Tensor& out) {
  ETX_CHECK(context,
            input.scalar_type() == ScalarType::Char && out.scalar_type() == ScalarType::Char &&
                input.dim() <= 4 && out.dim() == input.dim(),
            InvalidArgument, "input and out must be int8 of the same rank, at most 4");
  ETX_CHECK(context, before.size() == 4 && after.size() == 4, InvalidArgument,
            "pre_pad and post_pad must have 4 numbers");
  ETX_CHECK(context, value >= -128 && value <= 127, InvalidArgument, "pad_value must be of int8");
  const auto rank = static_cast<int>(input.dim());
  int64_t in[4], first[4], sizes[4];
  for (int i = 0; i < 4; ++i) {
    const int d = i - (4 - rank);
    const auto at = static_cast<size_t>(i);
    in[i] = d < 0 ? 1 : input.size(input.impl()->dim_order[d]);
    first[i] = before[at];
    ETX_CHECK(context,
              before[at] >= 0 && after[at] >= 0 && before[at] <= INT32_MAX &&
                  after[at] <= INT32_MAX && (d >= 0 || before[at] + after[at] == 0),
              InvalidArgument, "pre_pad and post_pad must not be negative, nor beyond the rank");
    sizes[i] = in[i] + before[at] + after[at];
    ETX_CHECK(context, d < 0 || (out.size(out.impl()->dim_order[d]) == sizes[i]), InvalidArgument,
              "out must have the padded sizes, in input's order of memory");
  }
  const int8_t* from = input.const_data_ptr<int8_t>();
  int8_t* const to = out.mutable_data_ptr<int8_t>();
  memset(to, static_cast<int>(value), static_cast<size_t>(out.numel()));
  for (int64_t a = 0; a < in[0]; ++a) {
    for (int64_t b = 0; b < in[1]; ++b) {
      for (int64_t c = 0; c < in[2]; ++c, from += in[3]) {
        const int64_t row = ((a + first[0]) * sizes[1] + b + first[1]) * sizes[2] + c + first[2];
        memcpy(to + row * sizes[3] + first[3], from, static_cast<size_t>(in[3]));
      }
    }
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::pad.out", pad_out)};

}  // namespace

ETX_KERNEL_TABLE(pad_kernels, kRows);

}  // namespace etx::cortex_m
