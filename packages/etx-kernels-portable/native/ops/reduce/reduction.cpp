// SPDX-License-Identifier: BSD-3-Clause
#include "ops/reduce/reduction.h"

#include "core/min_max.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

Error fold_mask(Context& context, const Tensor& in, const Fold& fold, uint32_t& mask) {
  const ssize_t rank = in.dim();
  mask = 0;
  if (fold.dims.empty()) {
    if (!fold.none_if_empty) mask = (1u << rank) - 1;
    return Error::Ok;
  }
  const int64_t limit = rank == 0 ? 1 : rank;
  for (const int64_t dim : fold.dims) {
    ETX_CHECK(context, dim >= -limit && dim < limit, InvalidArgument,
              "dim must be at least -rank and less than rank");
    const uint32_t bit = 1u << (dim < 0 ? dim + limit : dim);
    ETX_CHECK(context, (mask & bit) == 0, InvalidArgument, "dim must not name a dimension twice");
    mask |= bit;
  }
  if (rank == 0) mask = 0;
  return Error::Ok;
}

}  // namespace

Error plan_reduction(Context& context, const Tensor& in, const Fold& fold, Span<const Tensor> outs,
                     Reduction& plan) {
  uint32_t mask = 0;
  ETX_TRY(fold_mask(context, in, fold, mask));
  Shape shape;
  ssize_t out_dim[kMaxRank] = {};
  for (ssize_t d = 0; d < in.dim(); ++d) {
    const bool folded = (mask >> d & 1u) != 0;
    out_dim[d] = static_cast<ssize_t>(shape.rank());
    if (!folded || fold.keepdim) shape.push(folded ? 1 : in.size(d));
    if (folded) plan.count *= in.size(d);
  }
  for (const Tensor& out : outs) {
    const bool is_known = context.has_sizes(in) && context.has_sizes(out);
    if (!is_known && shape.rank() == static_cast<size_t>(out.dim())) continue;
    ETX_TRY(resize_out(context, out, shape));
  }
  for (ssize_t i = in.dim(); i-- > 0;) {
    const ssize_t d = fold.in_index_order ? i : in.dim_order()[static_cast<size_t>(i)];
    if ((mask >> d & 1u) != 0) {
      plan.folded.push(in.size(d), {in.stride(d)});
    } else {
      plan.kept.push(in.size(d), {in.stride(d), outs[0].stride(out_dim[d])});
    }
  }
  for (const Tensor& out : outs) {
    ETX_CHECK(context, equal(out.strides(), outs[0].strides()), InvalidArgument,
              "the outs must have the same dim order");
  }
  return Error::Ok;
}

void Reader::for_each_piece(int64_t offset, int64_t stride, int64_t count, const Piece& f) const {
  const int64_t size = static_cast<int64_t>(element_size(dtype_));
  const char* first = data_ + offset * size;
  if (in_place() != nullptr && (stride == 1 || count == 1)) return f(first, count);
  alignas(64) unsigned char block[kBlock * 8];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = min(count - i, kBlock);
    cast_through(first + i * stride * size, dtype_, stride, through_, block, as_, n);
    f(block, n);
  }
}

void Reader::for_each_folded(const Reduction& plan, int64_t offset, const Piece& f) const {
  if (plan.count == 0) return;
  const int64_t stride = plan.folded.stride[0][0];
  const int64_t inner = plan.folded.inner();
  plan.folded.for_each_outer(0, plan.folded.outer(), [&](const int64_t* offsets) {
    for_each_piece(offset + offsets[0], stride, inner, f);
  });
}

void Writer::write(int64_t offset, int64_t stride, const void* values, int64_t n) const {
  const int64_t size = static_cast<int64_t>(element_size(dtype_));
  if (stride == 1 || n == 1) return cast(values, as_, 1, data_ + offset * size, dtype_, n);
  const char* value = static_cast<const char*>(values);
  for (int64_t i = 0; i < n; ++i) {
    cast(value, as_, 1, data_ + (offset + i * stride) * size, dtype_, 1);
    value += element_size(as_);
  }
}

}  // namespace etx::portable
