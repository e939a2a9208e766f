// SPDX-License-Identifier: BSD-3-Clause
#include "ops/index/pairing.h"

namespace etx::portable {

Error check_pairing(Context& context, const Tensor& self, const Tensor& index, ssize_t axis,
                    const Tensor& out) {
  ETX_CHECK(context, index.numel() == 0 || is_index_type(index.scalar_type()), InvalidArgument,
            "index must be int64 or int32");
  ETX_CHECK(context, index.impl() != out.impl(), InvalidArgument, "out must not be an input");
  const bool same_rank =
      index.dim() == self.dim() || index.numel() == 0 || (self.dim() <= 1 && index.dim() <= 1);
  ETX_CHECK(context, same_rank, InvalidArgument, "index must have the rank of self");
  bool fits = true;
  for (ssize_t d = 0; index.numel() > 0 && d < index.dim(); ++d) {
    fits &= d == axis || index.size(d) <= self.size(d);
  }
  ETX_CHECK(context, fits, InvalidArgument,
            "index must not be larger than self in other dimensions than dim");
  return Error::Ok;
}

}  // namespace etx::portable
