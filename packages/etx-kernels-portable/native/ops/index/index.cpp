// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/complex.h"
#include "core/dispatch.h"
#include "core/element.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "ops/index/gather_rows.h"
#include "ops/index/index_plan.h"

namespace etx::portable {
namespace {

/// Strides of the dimensions that `plan.entries` has in a tensor of the result's shape.
Span<const int64_t> entry_strides(const IndexPlan& plan, Span<const int64_t> strides) {
  return strides.subspan(plan.position, plan.entries.rank());
}

/// Calls `add(size, self stride, other stride)` for the dimensions that are not indexed.
template <typename Add>
void for_each_kept(const Tensor& self, const IndexPlan& plan, Span<const int64_t> strides,
                   const Add& add) {
  size_t at = plan.position == 0 ? plan.entries.rank() : 0;
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (plan.indexed[d]) continue;
    add(self.size(d), self.stride(d), strides[at]);
    if (++at == plan.position) at += plan.entries.rank();
  }
}

Error index_out(Context& context, const Tensor& self, OptionalTensorList indices, Tensor& out) {
  IndexPlan plan;
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(make_index_plan(context, self, indices, plan));
  ETX_TRY(resize_out(context, out, plan.result));
  int64_t strides[kMaxRank];
  for (ssize_t d = 0; d < out.dim(); ++d) strides[d] = out.stride(d);
  const Span<const int64_t> all(strides, static_cast<size_t>(out.dim()));
  Entries to;
  ETX_TRY(make_entries(context, plan.entries, entry_strides(plan, all), to));
  GatherRows copy(plan.count, to, {plan.offsets});
  for_each_kept(self, plan, all,
                [&](int64_t size, int64_t own, int64_t other) { copy.add(size, other, own); });
  copy.run(context, out.mutable_data_ptr(), self.const_data_ptr(), self.element_size(), false);
  return Error::Ok;
}

template <typename T>
void add_run(char* dst, const char* src, size_t bytes) {
  T* to = reinterpret_cast<T*>(dst);
  const T* from = reinterpret_cast<const T*>(src);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    to[i] = add_elements(load_element(to + i), load_element(from + i));
  }
}

/// out[indices] = values, or += with `accumulate`.
Error put(Context& context, OptionalTensorList indices, const Tensor& values, bool accumulate,
          const Tensor& out) {
  IndexPlan plan;
  ETX_CHECK(context, values.scalar_type() == out.scalar_type(), InvalidArgument,
            "values must have the dtype of self");
  ETX_TRY(make_index_plan(context, out, indices, plan));
  const size_t rank = plan.result.rank();
  const ssize_t added = static_cast<ssize_t>(rank) - values.dim();
  int64_t strides[kMaxRank] = {};
  bool fits = rank <= kMaxRank && added >= 0;
  for (ssize_t d = 0; fits && d < values.dim(); ++d) {
    const int64_t size = plan.result[static_cast<size_t>(d + added)];
    fits = values.size(d) == size || values.size(d) == 1;
    strides[d + added] = values.size(d) == 1 ? 0 : values.stride(d);
  }
  ETX_CHECK(context, fits, InvalidArgument, "values must broadcast to the shape of self[indices]");
  const Span<const int64_t> all(strides, rank);
  Entries from;
  ETX_TRY(make_entries(context, plan.entries, entry_strides(plan, all), from));
  GatherRows copy(plan.count, {plan.offsets}, from);
  for_each_kept(out, plan, all,
                [&](int64_t size, int64_t own, int64_t other) { copy.add(size, own, other); });
  GatherRows::Combine combine = nullptr;
  if (accumulate) {
    ETX_TRY(dispatch(context, RealBool{}, part_of(out.scalar_type()), [&](auto tag) {
      combine = add_run<typename decltype(tag)::type>;
      return Error::Ok;
    }));
  }
  copy.run(context, out.mutable_data_ptr(), values.const_data_ptr(), out.element_size(), true,
           combine);
  return Error::Ok;
}

Error index_put_out(Context& context, const Tensor& self, OptionalTensorList indices,
                    const Tensor& values, bool accumulate, Tensor& out) {
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.const_data_ptr() != self.const_data_ptr()) ETX_TRY(copy_elements(context, out, self));
  return put(context, indices, values, accumulate, out);
}

Error index_put_(Context& context, Tensor& self, OptionalTensorList indices, const Tensor& values,
                 bool accumulate) {
  return put(context, indices, values, accumulate, self);
}

Error index_select_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                       Tensor& out) {
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_CHECK(context, index.dim() <= 1 && is_index_type(index.scalar_type()), InvalidArgument,
            "index must be a vector of int64 or int32");
  ETX_TRY(check_output(context, self, out));
  ETX_CHECK(context, index.impl() != out.impl(), InvalidArgument, "out must not be an input");
  const int64_t count = index.numel();
  Shape shape(self);
  if (self.dim() > 0) {
    shape[static_cast<size_t>(axis)] = count;
  } else {
    ETX_CHECK(context, count == 1, InvalidArgument,
              "index must hold one number when self has rank 0");
  }
  ETX_TRY(resize_out(context, out, shape));
  ETX_ASSIGN(int64_t* offsets,
             scratch<int64_t>(context, count, "no temporary memory for the table of offsets"));
  ETX_CHECK(context, read_indices(index, 0, 1, count, size_of(self, axis), false, offsets),
            InvalidArgument, "index must lie within dimension dim of self");
  for (int64_t i = 0; i < count; ++i) offsets[i] *= stride_of(self, axis);
  GatherRows copy(count, {nullptr, stride_of(out, axis)}, {offsets});
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (d != axis) copy.add(self.size(d), out.stride(d), self.stride(d));
  }
  copy.run(context, out.mutable_data_ptr(), self.const_data_ptr(), self.element_size(), false);
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::index.Tensor_out", index_out, kAnyDtype),
    ETX_KERNEL("aten::index_put.out", index_put_out, kAnyDtype),
    ETX_KERNEL("aten::index_put_", index_put_, kAnyDtype),
    ETX_KERNEL("aten::index_select.out", index_select_out, kAnyDtype),
};

}  // namespace

ETX_KERNEL_TABLE(index_kernels, kRows);

}  // namespace etx::portable
