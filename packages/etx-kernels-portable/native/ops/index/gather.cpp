// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstring>

#include <etx/kernel.h>

#include "core/broadcast.h"
#include "core/bytes_of.h"
#include "core/convert.h"
#include "core/dispatch.h"
#include "core/element.h"
#include "core/shape.h"
#include "core/strided_copy.h"
#include "ops/index/index_plan.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 128;

/// Element k of a block lies at `base + offsets[k]` of target and at `other + k * stride` of other.
struct Block {
  int64_t n;
  int64_t base;
  const int64_t* offsets;
  int64_t other;
  int64_t stride;
};

/// The elements of `index` paired with those of `other` at the same position and with those of
/// `target` at that position, but for dimension `axis`, where the index says which.
struct Pairing {
  Tensor index;
  Tensor target;
  ssize_t axis = 0;
  Nest<3> nest;  // strides of index, target (axis: 0) and other
  int64_t inner[3];
  int64_t length;

  Pairing(const Tensor& index_, const Tensor& target_, ssize_t axis_, const Tensor& other)
      : index(index_), target(target_), axis(axis_), inner{}, length(1) {
    const ssize_t other_rank = other.impl() == nullptr ? 0 : other.dim();
    for (ssize_t d = index.dim() - 1; d >= 0; --d) {
      const int64_t strides[3] = {index.stride(d), d == axis ? 0 : target.stride(d),
                                  d < other_rank ? other.stride(d) : 0};
      nest.push(index.size(d), strides);
    }
    if (nest.levels > 0) {
      length = nest.size[0];
      for (int t = 0; t < 3; ++t) inner[t] = nest.stride[0][t];
    }
  }

  /// Calls `body(block)` for blocks of the rows [begin, end). False when an index is outside of
  /// target.
  template <typename Body>
  bool run(int64_t begin, int64_t end, const Body& body) const {
    const int64_t size = size_of(target, axis);
    const int64_t scale = stride_of(target, axis);
    bool inside = true;
    nest.for_each_outer(begin, end, [&](const int64_t* at) {
      int64_t offsets[kBlock];
      for (int64_t j = 0; j < length && inside; j += kBlock) {
        const int64_t n = length - j < kBlock ? length - j : kBlock;
        inside = read_indices(index, at[0] + j * inner[0], inner[0], n, size, false, offsets);
        if (!inside) return;
        if (scale != 1 || inner[1] != 0) {
          for (int64_t k = 0; k < n; ++k) offsets[k] = offsets[k] * scale + k * inner[1];
        }
        body(Block{n, at[1] + j * inner[1], offsets, at[2] + j * inner[2], inner[2]});
      }
    });
    return inside;
  }
};

/// What gather and the scatters ask of `index`: a position in `self` for each of its elements.
Error check_index(Context& context, const Tensor& self, const Tensor& index, ssize_t axis,
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

Error gather_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                 bool /*sparse_grad*/, Tensor& out) {
  ssize_t axis = 0;
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_index(context, self, index, axis, out));
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
      for (int64_t k = 0; k < block.n; ++k) to[k * block.stride] = from[block.offsets[k]];
    };
    context.parallel_for(0, pairing.nest.outer(), 1 + 16384 / pairing.length,
                         [&](int64_t begin, int64_t end) {
                           if (!pairing.run(begin, end, move)) inside = false;
                         });
  });
  ETX_CHECK(context, inside.load(), InvalidArgument, "index must lie within dimension dim of self");
  return Error::Ok;
}

/// out = self, and the checks that the scatters share.
Error begin_scatter(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor* src, const Tensor& out, ssize_t& axis) {
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_index(context, self, index, axis, out));
  if (src != nullptr) {
    ETX_TRY(check_output(context, *src, out));
    bool fits =
        index.numel() == 0 || src->dim() == index.dim() || (src->dim() <= 1 && index.dim() <= 1);
    for (ssize_t d = 0; fits && index.numel() > 0 && d < index.dim(); ++d) {
      fits = index.size(d) <= size_of(*src, d);
    }
    ETX_CHECK(context, fits, InvalidArgument,
              "src must have the rank of index and be at least as large");
  }
  ETX_TRY(resize_out(context, out, Shape(self)));
  if (out.const_data_ptr() != self.const_data_ptr()) ETX_TRY(copy_elements(context, out, self));
  return Error::Ok;
}

Error finish_scatter(Context& context, bool inside) {
  ETX_CHECK(context, inside, InvalidArgument, "index must lie within dimension dim of self");
  return Error::Ok;
}

Error scatter_src_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src, Tensor& out) {
  ssize_t axis = 0;
  ETX_TRY(begin_scatter(context, self, dim, index, &src, out, axis));
  if (index.numel() == 0) return Error::Ok;
  const Pairing pairing(index, out, axis, src);
  bool inside = true;
  by_size(out.element_size(), [&](auto bytes) {
    using T = decltype(bytes);
    const T* const from = src.const_data_ptr<T>();
    T* const to = out.mutable_data_ptr<T>();
    inside = pairing.run(0, pairing.nest.outer(), [&](const Block& block) {
      for (int64_t k = 0; k < block.n; ++k) {
        to[block.base + block.offsets[k]] = from[block.other + k * block.stride];
      }
    });
  });
  return finish_scatter(context, inside);
}

Error scatter_value_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                        Scalar value, Tensor& out) {
  ssize_t axis = 0;
  alignas(16) char element[16];
  ETX_TRY(scalar_bytes(context, value, out.scalar_type(), element));
  ETX_TRY(begin_scatter(context, self, dim, index, nullptr, out, axis));
  if (index.numel() == 0) return Error::Ok;
  const Pairing pairing(index, out, axis, Tensor(nullptr));
  bool inside = true;
  by_size(out.element_size(), [&](auto bytes) {
    std::memcpy(&bytes, element, sizeof(bytes));
    auto* const to = out.mutable_data_ptr<decltype(bytes)>();
    inside = pairing.run(0, pairing.nest.outer(), [&](const Block& block) {
      for (int64_t k = 0; k < block.n; ++k) {
        to[block.base + block.offsets[k]] = bytes;
      }
    });
  });
  return finish_scatter(context, inside);
}

/// Sums of float16 and bfloat16 are float32 until all is added.
template <typename T, typename Run>
Error add_widely(Context& context, const Tensor& out, const Run& run) {
  const size_t count = static_cast<size_t>(out.numel());
  float* const sums = context.allocate_temp_array<float>(count);
  ETX_CHECK(context, sums != nullptr, MemoryAllocationFailed, "no temporary memory for the sums");
  T* const to = out.mutable_data_ptr<T>();
  for (size_t i = 0; i < count; ++i) sums[i] = static_cast<float>(to[i]);
  ETX_TRY(run(sums));
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
  return Error::Ok;
}

Error scatter_add_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src, Tensor& out) {
  ssize_t axis = 0;
  ETX_TRY(begin_scatter(context, self, dim, index, &src, out, axis));
  if (index.numel() == 0) return Error::Ok;
  const Pairing pairing(index, out, axis, src);
  return dispatch(context, RealBool{}, out.scalar_type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = src.const_data_ptr<T>();
    T* const to = out.mutable_data_ptr<T>();
    const auto run = [&](auto* sums) {
      using Sum = std::remove_reference_t<decltype(*sums)>;
      const auto add = [&](const Block& block) {
        for (int64_t k = 0; k < block.n; ++k) {
          Sum* const sum = sums + block.base + block.offsets[k];
          const T value = load_element(from + block.other + k * block.stride);
          *sum = add_elements(load_element(sum), static_cast<Sum>(value));
        }
      };
      return finish_scatter(context, pairing.run(0, pairing.nest.outer(), add));
    };
    if constexpr (std::is_same_v<Compute<T>, T>) {
      return run(to);
    } else {
      return add_widely<T>(context, out, run);
    }
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::gather.out", gather_out, kAnyDtype),
    ETX_KERNEL("aten::scatter.src_out", scatter_src_out, kAnyDtype),
    ETX_KERNEL("aten::scatter.value_out", scatter_value_out, kCastable),
    ETX_KERNEL("aten::scatter_add.out", scatter_add_out, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(gather_kernels, kRows);

}  // namespace etx::portable
