// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/shape.h"
#include "core/strided_copy.h"

namespace etx::portable {
namespace {

Error repeat_out(Context& context, const Tensor& self, IntList repeats, Tensor& out) {
  const ssize_t added = static_cast<ssize_t>(repeats.size()) - self.dim();
  ETX_CHECK(context, added >= 0, InvalidArgument, "repeats must have at least the rank of self");
  Shape shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const ssize_t d = static_cast<ssize_t>(i) - added;
    ETX_CHECK(context, repeats[i] >= 0 && repeats[i] <= INT32_MAX, InvalidArgument,
              "repeats must be from 0 to 2147483647");
    shape.push(Checked(repeats[i]) * (d < 0 ? 1 : self.size(d)));
  }
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, shape));
  StridedCopy copy;
  for (ssize_t d = 0; d < out.dim(); ++d) {
    const int64_t size = d < added ? 1 : self.size(d - added);
    copy.add(repeats[static_cast<size_t>(d)], Checked(out.stride(d)) * size, 0);
    if (d >= added) copy.add(size, out.stride(d), self.stride(d - added));
  }
  return copy.run(context, out, self, self.element_size());
}

/// out = i repeated repeats[i] times, for each i.
Error repeat_interleave_out(Context& context, const Tensor& repeats,
                            std::optional<int64_t> output_size, Tensor& out) {
  ETX_CHECK(context, repeats.dim() == 1, InvalidArgument, "repeats must have one dimension");
  ETX_CHECK(context, repeats.scalar_type() == out.scalar_type() && repeats.impl() != out.impl(),
            InvalidArgument, "out must have the dtype of repeats");
  return dispatch(context, Indices{}, repeats.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = repeats.const_data_ptr<T>();
    Checked sum = 0;
    for (ssize_t i = 0; i < repeats.numel(); ++i) {
      ETX_CHECK(context, from[i] >= 0 && from[i] <= INT32_MAX, InvalidArgument,
                "repeats must be from 0 to 2147483647");
      sum += from[i];
    }
    const int64_t total = sum.value_or(INT64_MAX);
    ETX_CHECK(context, !output_size.has_value() || *output_size == total, InvalidArgument,
              "output_size must be the sum of repeats");
    Shape shape;
    shape.push(total);
    ETX_TRY(resize_out(context, out, shape));
    T* to = out.mutable_data_ptr<T>();
    int64_t at = 0;
    for (ssize_t i = 0; i < repeats.numel(); ++i) {
      for (T k = 0; k < from[i] && at < total; ++k) to[at++] = static_cast<T>(i);
    }
    return Error::Ok;
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::repeat.out", repeat_out, kAnyDtype),
    ETX_KERNEL("aten::repeat_interleave.Tensor_out", repeat_interleave_out, Indices::bits),
};

}  // namespace

ETX_KERNEL_TABLE(repeat_kernels, kRows);

}  // namespace etx::portable
