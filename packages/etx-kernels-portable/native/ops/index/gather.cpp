// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include <etx/kernel.h>

#include "core/bytes_of.h"
#include "ops/index/pairing.h"

namespace etx::portable {
namespace {

Error gather_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                 bool /*sparse_grad*/, Tensor& out) {
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_pairing(context, self, index, axis, out));
  ETX_TRY(resize_out(context, out, Shape(index)));
  if (index.numel() == 0) return Error::Ok;
  const Pairing pairing(index, self, axis, out);
  std::atomic<bool> inside{true};
  by_size(self.element_size(), [&](auto bytes) {
    using T = decltype(bytes);
    const T* const src = self.const_data_ptr<T>();
    T* const dst = out.mutable_data_ptr<T>();
    const auto move = [&](const Block& block) {
      const T* const from = src + block.base;
      T* const to = dst + block.other;
      const int64_t n = block.n, stride = block.stride;
      const int64_t* const offsets = block.offsets;
      if (stride == 1) {
        for (int64_t k = 0; k < n; ++k) to[k] = from[offsets[k]];
      } else {
        for (int64_t k = 0; k < n; ++k) to[k * stride] = from[offsets[k]];
      }
    };
    context.parallel_for(0, pairing.nest.outer(), 1 + 16384 / pairing.length,
                         [&](int64_t begin, int64_t end) {
                           if (!pairing.run(begin, end, move)) inside = false;
                         });
  });
  ETX_CHECK(context, inside.load(), InvalidArgument, "index must lie within dimension dim of self");
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::gather.out", gather_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(gather_kernels, kRows);

}  // namespace etx::portable
