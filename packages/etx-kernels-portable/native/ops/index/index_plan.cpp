// SPDX-License-Identifier: BSD-3-Clause
#include "ops/index/index_plan.h"

#include "core/min_max.h"
#include "core/scratch.h"

namespace etx::portable {
namespace {

/// A number is outside when it, or its distance to the last index, is negative: has the top bit.
template <typename T>
bool read_as(const T* index, int64_t stride, int64_t count, int64_t size, bool wrap,
             int64_t* indices) {
  const uint64_t last = static_cast<uint64_t>(size - 1);
  const int64_t shift = wrap ? size : 0;
  uint64_t signs = 0;
  if (stride == 1 && !wrap) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t v = static_cast<uint64_t>(static_cast<int64_t>(index[i]));
      signs |= v | (last - v);
      indices[i] = static_cast<int64_t>(v);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t given = static_cast<int64_t>(index[i * stride]);
      const uint64_t v = static_cast<uint64_t>(given + (given < 0 ? shift : 0));
      signs |= v | (last - v);
      indices[i] = static_cast<int64_t>(v);
    }
  }
  return signs >> 63 == 0;
}

/// An index tensor, or the offsets of the true elements of a mask.
struct Component {
  etx_tensor* tensor = nullptr;
  const int64_t* mask_offsets = nullptr;
  int64_t mask_count = 0;
  ssize_t dim = 0;
};

bool is_mask(const Tensor& index) {
  return index.scalar_type() == ScalarType::Bool || index.scalar_type() == ScalarType::Byte;
}

/// Offsets in `self` of the true elements of `mask`, which covers dimensions from `dim` on.
Error read_mask(Context& context, const Tensor& self, const Tensor& mask, ssize_t dim,
                Component& component) {
  for (ssize_t d = 0; d < mask.dim(); ++d) {
    ETX_CHECK(context, mask.size(d) == self.size(dim + d), InvalidArgument,
              "a mask in indices must have the sizes of the dimensions that it covers");
  }
  ETX_ASSIGN(int64_t* offsets, scratch<int64_t>(context, mask.numel(),
                                                "no temporary memory for the table of offsets"));
  const uint8_t* data = mask.const_data_ptr<uint8_t>();
  int64_t index[kMaxRank] = {};
  int64_t count = 0;
  int64_t from = 0;
  int64_t to = 0;
  for (int64_t n = 0; n < mask.numel(); ++n) {
    offsets[count] = to;
    count += data[from] != 0;
    for (ssize_t d = mask.dim() - 1; d >= 0; --d) {
      from += mask.stride(d);
      to += self.stride(dim + d);
      if (++index[d] < mask.size(d)) break;
      from -= index[d] * mask.stride(d);
      to -= index[d] * self.stride(dim + d);
      index[d] = 0;
    }
  }
  component.mask_offsets = offsets;
  component.mask_count = count;
  return Error::Ok;
}

/// Merges the shape of a component into the one all are broadcast to.
bool broadcast_into(Shape& shape, const Component& component) {
  const ssize_t rank = component.tensor ? Tensor(component.tensor).dim() : 1;
  Shape merged;
  const ssize_t all = max(static_cast<ssize_t>(shape.rank()), rank);
  for (ssize_t d = 0; d < all; ++d) {
    const ssize_t a = d - (all - static_cast<ssize_t>(shape.rank()));
    const ssize_t b = d - (all - rank);
    const int64_t left = a < 0 ? 1 : shape[static_cast<size_t>(a)];
    int64_t right = 1;
    if (b >= 0) right = component.tensor ? Tensor(component.tensor).size(b) : component.mask_count;
    if (left != right && left != 1 && right != 1) return false;
    merged.push(left == 1 ? right : left);
  }
  shape = merged;
  return true;
}

/// Adds the offsets of one component to those of all entries.
Error add_offsets(Context& context, const Tensor& self, const Component& component,
                  const IndexPlan& plan, int64_t* offsets) {
  const ssize_t rank = static_cast<ssize_t>(plan.entries.rank());
  int64_t strides[kMaxRank] = {};
  const ssize_t own = component.tensor ? Tensor(component.tensor).dim() : 1;
  for (ssize_t d = rank - own; d < rank; ++d) {
    const ssize_t k = d - (rank - own);
    const int64_t size = component.tensor ? Tensor(component.tensor).size(k) : component.mask_count;
    const int64_t stride = component.tensor ? Tensor(component.tensor).stride(k) : 1;
    strides[d] = size == 1 ? 0 : stride;
  }
  const int64_t inner = rank == 0 ? 1 : plan.entries[static_cast<size_t>(rank - 1)];
  const int64_t inner_stride = rank == 0 ? 0 : strides[rank - 1];
  const int64_t scale = component.tensor ? self.stride(component.dim) : 1;
  const int64_t size = component.tensor ? self.size(component.dim) : 0;
  constexpr int64_t kBlock = 128;
  int64_t block[kBlock];
  int64_t index[kMaxRank] = {};
  int64_t from = 0;
  for (int64_t row = 0; row < plan.count; row += inner) {
    for (int64_t begin = 0; begin < inner; begin += kBlock) {
      const int64_t n = min(inner - begin, kBlock);
      int64_t* const to = offsets + row + begin;
      const int64_t start = from + begin * inner_stride;
      if (component.tensor == nullptr) {
        for (int64_t i = 0; i < n; ++i) {
          to[i] += component.mask_offsets[start + i * inner_stride];
        }
        continue;
      }
      ETX_CHECK(context,
                read_indices(Tensor(component.tensor), start, inner_stride, n, size, true, block),
                InvalidArgument, "an index is outside of the dimension it selects from");
      for (int64_t i = 0; i < n; ++i) to[i] += block[i] * scale;
    }
    for (ssize_t d = rank - 2; d >= 0; --d) {
      from += strides[d];
      if (++index[d] < plan.entries[static_cast<size_t>(d)]) break;
      from -= index[d] * strides[d];
      index[d] = 0;
    }
  }
  return Error::Ok;
}

/// The shape of the result: the entries stand where the indexed dimensions were when these are
/// neighbours, and in front otherwise.
void place_entries(const Tensor& self, size_t groups, ssize_t first, IndexPlan& plan) {
  plan.position = groups == 1 ? static_cast<size_t>(first) : 0;
  size_t at = 0;
  bool placed = false;
  const auto place = [&] {
    for (size_t i = 0; i < plan.entries.rank(); ++i) plan.result.push(plan.entries[i]);
    placed = true;
  };
  for (ssize_t d = 0; d < self.dim(); ++d) {
    if (!placed && at == plan.position) place();
    if (plan.indexed[d]) continue;
    plan.result.push(self.size(d));
    ++at;
  }
  if (!placed) place();
}

}  // namespace

bool read_indices(const Tensor& index, int64_t offset, int64_t stride, int64_t count, int64_t size,
                  bool wrap, int64_t* indices) {
  return index.scalar_type() == ScalarType::Long
             ? read_as(index.const_data_ptr<int64_t>() + offset, stride, count, size, wrap, indices)
             : read_as(index.const_data_ptr<int32_t>() + offset, stride, count, size, wrap,
                       indices);
}

Error make_index_plan(Context& context, const Tensor& self, const OptionalTensorList& indices,
                      IndexPlan& plan) {
  Component components[kMaxRank];
  size_t used = 0;
  size_t groups = 0;
  ssize_t first = 0;
  ssize_t dim = 0;
  bool inside = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices.has_value(i)) {
      ++dim;
      inside = false;
      continue;
    }
    const Tensor index = indices[i];
    const ssize_t covered = is_mask(index) ? index.dim() : 1;
    ETX_CHECK(context, used < kMaxRank && dim + covered <= self.dim(), InvalidArgument,
              "indices must not cover more dimensions than self has");
    ETX_CHECK(context, is_mask(index) || is_index_type(index.scalar_type()), InvalidArgument,
              "indices must be int64, int32, bool or uint8");
    Component& component = components[used++];
    component.dim = dim;
    if (is_mask(index)) {
      ETX_TRY(read_mask(context, self, index, dim, component));
    } else {
      component.tensor = index.impl();
    }
    ETX_CHECK(context, broadcast_into(plan.entries, component), InvalidArgument,
              "the tensors of indices must broadcast to one shape");
    if (!inside && groups++ == 0) first = dim;
    inside = true;
    for (ssize_t d = dim; d < dim + covered; ++d) plan.indexed[d] = true;
    dim += covered;
  }
  ETX_CHECK(context, dim <= self.dim() && plan.entries.rank() <= kMaxRank, InvalidArgument,
            "indices must not cover more dimensions than self has");
  place_entries(self, groups, first, plan);
  Checked entries = 1;
  for (size_t i = 0; i < plan.entries.rank(); ++i) entries *= plan.entries[i];
  ETX_CHECK(context, entries.is_within(0, INT32_MAX), InvalidArgument,
            "indices must not select more than 2147483647 entries");
  plan.count = entries.value_or(0);
  ETX_ASSIGN(int64_t* offsets,
             scratch<int64_t>(context, plan.count, "no temporary memory for the table of offsets"));
  for (int64_t i = 0; i < plan.count; ++i) offsets[i] = 0;
  for (size_t i = 0; i < used && plan.count > 0; ++i) {
    ETX_TRY(add_offsets(context, self, components[i], plan, offsets));
  }
  plan.offsets = offsets;
  return Error::Ok;
}

}  // namespace etx::portable
