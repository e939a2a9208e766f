// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/shape.h"
#include "ops/integer/contract.h"

namespace etx::portable {
namespace {

constexpr int64_t kValues = 256;
constexpr int64_t kAtOnce = 8;  ///< Numbers read before any is written.

/// The table is copied: `out` may lie on it.
template <typename T>
void look_up(Context& context, const Tensor& input, const Tensor& table, const Tensor& out) {
  const T* const from = static_cast<const T*>(table.const_data_ptr());
  const uint32_t flip = input.scalar_type() == ScalarType::Char ? 128 : 0;
  T values[kValues];
  for (uint32_t i = 0; i < kValues; ++i) values[i] = from[i ^ flip];
  const uint8_t* const x = static_cast<const uint8_t*>(input.const_data_ptr());
  T* const y = static_cast<T*>(out.mutable_data_ptr());
  context.parallel_for(0, input.numel(), 65536, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + kAtOnce <= end; i += kAtOnce) {
      uint8_t given[kAtOnce];
      T found[kAtOnce];
      memcpy(given, x + i, sizeof(given));
      for (int64_t k = 0; k < kAtOnce; ++k) found[k] = values[given[k]];
      memcpy(y + i, found, sizeof(found));
    }
    for (; i < end; ++i) y[i] = values[x[i]];
  });
}

/// out = table[input - the least number of its dtype].
Error lookup_out(Context& context, const Tensor& input, const Tensor& table, Tensor& out) {
  const ScalarType type = input.scalar_type();
  ETX_CHECK(context, type == ScalarType::Char || type == ScalarType::Byte, InvalidArgument,
            "input must be int8 or uint8");
  ETX_CHECK(context, table.numel() == kValues && table.dim() == 1 && table.is_contiguous(),
            InvalidArgument, "table must have one dimension of 256 numbers");
  const size_t width = table.element_size();
  ETX_CHECK(context, width == 1 || width == 4, InvalidArgument,
            "table must be of a dtype of 1 byte or 4");
  ETX_CHECK(context, out.scalar_type() == table.scalar_type() && table.impl() != out.impl(),
            InvalidArgument, "out must have the dtype of table and not be it");
  ETX_TRY(set_sizes(context, {&input, 1}, out, Shape(input)));
  ETX_CHECK(context, same_layout(input, out), InvalidArgument,
            "out must have the dim order of input");
  if (context.is_loading()) return Error::Ok;
  if (width == 1) {
    look_up<uint8_t>(context, input, table, out);
  } else {
    look_up<uint32_t>(context, input, table, out);
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL(
        "etx::lookup.out", lookup_out,
        dtype_bit(ScalarType::Char) | dtype_bit(ScalarType::Byte) | kInPlace | kChecksAtLoad),
};

}  // namespace

ETX_KERNEL_TABLE(lookup_kernels, kRows);

}  // namespace etx::portable
