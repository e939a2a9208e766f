// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/scratch.h"
#include "core/shape.h"
#include "ops/index/gather_rows.h"
#include "ops/index/index_plan.h"

namespace etx::portable {
namespace {

/// out[..., :] = weight[indices[...], :].
Error embedding_out(Context& context, const Tensor& weight, const Tensor& indices,
                    int64_t /*padding_idx*/, bool /*scale_grad_by_freq*/, bool /*sparse*/,
                    Tensor& out) {
  ETX_CHECK(context, weight.dim() == 2, InvalidArgument, "weight must have 2 dimensions");
  ETX_CHECK(context, is_index_type(indices.scalar_type()), InvalidArgument,
            "indices must be int64 or int32");
  ETX_TRY(check_output(context, weight, out));
  ETX_CHECK(context, indices.impl() != out.impl(), InvalidArgument, "out must not be an input");
  const int64_t count = indices.numel();
  Shape shape(indices);
  shape.push(weight.size(1));
  ETX_TRY(resize_out(context, out, shape));
  ETX_ASSIGN(int64_t* rows,
             scratch<int64_t>(context, count, "no temporary memory for the table of offsets"));
  ETX_CHECK(context, read_indices(indices, 0, 1, count, weight.size(0), false, rows),
            InvalidArgument, "indices must be at least 0 and less than weight's rows");
  for (int64_t i = 0; i < count; ++i) rows[i] *= weight.stride(0);
  int64_t strides[kMaxRank];
  for (ssize_t d = 0; d < indices.dim(); ++d) strides[d] = out.stride(d);
  Entries to;
  ETX_TRY(make_entries(context, Shape(indices), {strides, static_cast<size_t>(indices.dim())}, to));
  Entries from{rows, 0};
  if (!indices.is_contiguous()) {
    int64_t memory_order[kMaxRank];
    for (ssize_t d = 0; d < indices.dim(); ++d) memory_order[d] = indices.stride(d);
    Entries order;
    ETX_TRY(make_entries(context, Shape(indices),
                         {memory_order, static_cast<size_t>(indices.dim())}, order));
    ETX_ASSIGN(int64_t* sorted,
               scratch<int64_t>(context, count, "no temporary memory for the table of offsets"));
    for (int64_t i = 0; i < count; ++i) sorted[i] = rows[order[i]];
    from.table = sorted;
  }
  GatherRows copy(count, to, from);
  copy.add(weight.size(1), out.stride(-1), weight.stride(1));
  copy.run(context, out.mutable_data_ptr(), weight.const_data_ptr(), weight.element_size(), false);
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::embedding.out", embedding_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(embedding_kernels, kRows);

}  // namespace etx::portable
