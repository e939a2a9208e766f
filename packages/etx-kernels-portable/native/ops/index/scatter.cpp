// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include <etx/kernel.h>

#include "core/bytes_of.h"
#include "core/callback.h"
#include "core/convert.h"
#include "core/dispatch.h"
#include "core/element.h"
#include "core/loops.h"
#include "core/scratch.h"
#include "core/strided_copy.h"
#include "ops/index/pairing.h"

namespace etx::portable {
namespace {

/// out = self, and the checks that the scatters share.
Error begin_scatter(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor* src, const Tensor& out, ssize_t& axis) {
  ETX_TRY(wrap_dim(context, dim, self.dim(), axis));
  ETX_TRY(check_output(context, self, out));
  ETX_TRY(check_pairing(context, self, index, axis, out));
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

/// The loop over blocks exists once. False when an index is outside of the target.
bool for_each_block(const Pairing& pairing, const Callback<const Block&>& body) {
  return pairing.run(0, pairing.nest.outer(), body);
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
    inside = for_each_block(pairing, [&](const Block& block) {
      const auto [n, base, offsets, other, stride] = block;
      T* const places = to + base;
      const T* const values = from + other;
      for (int64_t k = 0; k < n; ++k) places[offsets[k]] = values[k * stride];
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
    inside = for_each_block(pairing, [&](const Block& block) {
      const auto [n, base, offsets, other, stride] = block;
      const auto one = bytes;
      auto* const places = to + base;
      for (int64_t k = 0; k < n; ++k) places[offsets[k]] = one;
    });
  });
  return finish_scatter(context, inside);
}

/// Sums of float16 and bfloat16 are float32 until all is added.
template <typename T, typename Run>
Error add_widely(Context& context, const Tensor& out, const Run& run) {
  const int64_t count = out.numel();
  ETX_ASSIGN(float* const sums, scratch<float>(context, count, "no temporary memory for the sums"));
  T* const to = out.mutable_data_ptr<T>();
  for (int64_t i = 0; i < count; ++i) sums[i] = static_cast<float>(to[i]);
  ETX_TRY(run(sums));
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
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
        const auto [n, base, offsets, other, stride] = block;
        Sum* const places = sums + base;
        const T* const values = from + other;
        for (int64_t k = 0; k < n; ++k) {
          Sum* const sum = places + offsets[k];
          *sum =
              add_elements(load_element(sum), static_cast<Sum>(load_element(values + k * stride)));
        }
      };
      return finish_scatter(context, for_each_block(pairing, add));
    };
    if constexpr (std::is_same_v<Compute<T>, T>) {
      return run(to);
    } else {
      return add_widely<T>(context, out, run);
    }
  });
}

enum class Reduce { kSum, kProd, kMean, kAmax, kAmin };
constexpr std::string_view kReductions[] = {"sum", "prod", "mean", "amax", "amin"};

template <typename C>
C joined(Reduce how, C a, C b) {
  if (how == Reduce::kProd) return wrap_mul(a, b);
  if (how == Reduce::kAmax) return maximum(a, b);
  return how == Reduce::kAmin ? minimum(a, b) : wrap_add(a, b);
}

/// What joined with a number is that number.
template <typename C>
C neutral(Reduce how) {
  using Limits = std::numeric_limits<C>;
  const C largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const C least = Limits::has_infinity ? -Limits::infinity() : Limits::min();
  if (how == Reduce::kAmax) return least;
  if (how == Reduce::kAmin) return largest;
  return how == Reduce::kProd ? C{1} : C{0};
}

/// Quotients of integers are rounded down.
template <typename C>
C quotient(C total, int64_t count) {
  const C n = static_cast<C>(count);
  if constexpr (std::is_integral_v<C>) return total / n - (total % n < 0 ? 1 : 0);
  return total / n;
}

/// Joins the elements of `src` to those of `out` at the places of `pairing`, in dtype `as`, that of
/// `C`.
template <typename C>
Error reduce_into(Context& context, const Pairing& pairing, Reduce how, bool include_self,
                  const Tensor& src, const Tensor& out, ScalarType as) {
  const ScalarType dtype = out.scalar_type();
  const int64_t count = out.numel(), size = static_cast<int64_t>(out.element_size());
  char* const to = out.mutable_data_ptr<char>();
  const char* const from = src.const_data_ptr<char>();
  C* totals = reinterpret_cast<C*>(to);
  if (dtype != as) {
    ETX_ASSIGN(totals, scratch<C>(context, count, "no temporary memory for the results"));
    cast(to, dtype, 1, totals, as, count);
  }
  int64_t* counts = nullptr;
  if (how == Reduce::kMean) {
    ETX_ASSIGN(counts, scratch<int64_t>(context, count, "no temporary memory for the counts"));
    std::fill_n(counts, count, include_self ? 1 : 0);
  }
  bool inside = include_self || for_each_block(pairing, [&](const Block& block) {
                  for (int64_t k = 0; k < block.n; ++k)
                    totals[block.base + block.offsets[k]] = neutral<C>(how);
                });
  inside = inside && for_each_block(pairing, [&](const Block& block) {
             C values[Pairing::kBlock];
             cast(from + block.other * size, dtype, block.stride, values, as, block.n);
             for (int64_t k = 0; k < block.n; ++k) {
               const int64_t place = block.base + block.offsets[k];
               totals[place] = joined(how, totals[place], values[k]);
               if (counts != nullptr) ++counts[place];
             }
           });
  ETX_TRY(finish_scatter(context, inside));
  if (counts != nullptr) {
    if (dtype != as && as == ScalarType::Long) {  // Sums have the bits of the dtype.
      cast(totals, as, 1, to, dtype, count);
      cast(to, dtype, 1, totals, as, count);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (counts[i] > 1) totals[i] = quotient(totals[i], counts[i]);
    }
  }
  if (dtype != as) cast(totals, as, 1, to, dtype, count);
  return Error::Ok;
}

Error scatter_reduce_two_out(Context& context, const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, bool include_self,
                             Tensor& out) {
  const auto* const found = std::find(std::begin(kReductions), std::end(kReductions), reduce);
  ETX_CHECK(context, found != std::end(kReductions), InvalidArgument,
            "reduce must be sum, prod, mean, amax or amin");
  ETX_CHECK(context, RealBool::contains(out.scalar_type()), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  const Reduce how = static_cast<Reduce>(found - std::begin(kReductions));
  ssize_t axis = 0;
  ETX_TRY(begin_scatter(context, self, dim, index, &src, out, axis));
  if (index.numel() == 0) return Error::Ok;
  const Pairing pairing(index, out, axis, src);
  const ScalarType as = wide(out.scalar_type());
  return dispatch<is_computed>(context, Join<ComputedFloating, Int64>{}, as, [&](auto tag) {
    using C = typename decltype(tag)::type;
    return reduce_into<C>(context, pairing, how, include_self, src, out, as);
  });
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::scatter.src_out", scatter_src_out, kAnyDtype),
    ETX_KERNEL("aten::scatter.value_out", scatter_value_out, kCastable),
    ETX_KERNEL("aten::scatter_add.out", scatter_add_out, RealBool::bits),
    ETX_KERNEL("aten::scatter_reduce.two_out", scatter_reduce_two_out, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(scatter_kernels, kRows);

}  // namespace etx::portable
