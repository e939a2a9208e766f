// SPDX-License-Identifier: BSD-3-Clause
/// Folds: sum, mean, prod, any.

#include <optional>

#include "core/dispatch.h"
#include "core/loops.h"
#include "isa/row_loops.h"
#include "ops/reduce/fold.h"

namespace etx::portable {
namespace {

/// Up to here, adding one by one costs less than calling the vector code.
constexpr int64_t kShort = 8;

template <typename C>
struct Sum {
  static constexpr RowLoop kRows = &Isa::add;
  static C start() { return 0; }
  static C pair(C a, C b) { return wrap_add(a, b); }
  static C run(const C* x, int64_t n) {
    if (n > kShort) return sum(x, n);
    C total = 0;
    for (int64_t i = 0; i < n; ++i) total = wrap_add(total, x[i]);
    return total;
  }
};

template <typename C>
struct Product {
  static constexpr RowLoop kRows = &Isa::mul;
  static C start() { return 1; }
  static C pair(C a, C b) { return wrap_mul(a, b); }
  static C run(const C* x, int64_t n) {
    constexpr int64_t kChains = kIsSmall ? 1 : 16;
    C products[kChains];
    for (C& product : products) product = 1;
    int64_t i = 0;
    for (; i + kChains <= n; i += kChains) {
      for (int64_t k = 0; k < kChains; ++k) products[k] = wrap_mul(products[k], x[i + k]);
    }
    C total = 1;
    for (const C product : products) total = wrap_mul(total, product);
    for (; i < n; ++i) total = wrap_mul(total, x[i]);
    return total;
  }
};

struct Any {
  static bool start() { return false; }
  static bool pair(bool a, bool b) { return a | b; }
  static bool run(const bool* x, int64_t n) {
    const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(x);
    uint8_t found = 0;
    for (int64_t i = 0; i < n; ++i) found |= bytes[i];
    return found != 0;
  }
};

constexpr Folding kAny = make_folding<Any, bool>(ScalarType::Bool);

IntList dims_or_all(const std::optional<IntList>& dims) { return dims.value_or(IntList()); }

bool sums_into(const Tensor& in, const Tensor& out) {
  return is_floating(out.scalar_type()) || !is_floating(in.scalar_type());
}

Error sum_out(Context& context, const Tensor& self, std::optional<IntList> dim, bool keepdim,
              std::optional<ScalarType> dtype, Tensor& out) {
  ETX_CHECK(context, dtype.has_value() || sums_into(self, out), InvalidArgument,
            "out must have a floating dtype when self has one");
  return fold<Sum>(context, self, wide(out.scalar_type()), {dims_or_all(dim), keepdim}, false, out,
                   dtype);
}

Error mean_out(Context& context, const Tensor& self, std::optional<IntList> dim, bool keepdim,
               std::optional<ScalarType>, Tensor& out) {
  ETX_CHECK(context, is_floating(out.scalar_type()), InvalidArgument,
            "out must have a floating dtype");
  return fold<Sum>(context, self, wide(out.scalar_type()), {dims_or_all(dim), keepdim}, true, out);
}

Error mean_all_out(Context& context, const Tensor& self, std::optional<ScalarType> dtype,
                   Tensor& out) {
  return mean_out(context, self, std::nullopt, false, dtype, out);
}

Error prod_out(Context& context, const Tensor& self, std::optional<ScalarType> dtype, Tensor& out) {
  ETX_CHECK(context, dtype.has_value() || sums_into(self, out), InvalidArgument,
            "out must have a floating dtype when self has one");
  return fold<Product>(context, self, wide(out.scalar_type()), {}, false, out, dtype);
}

Error prod_dim_out(Context& context, const Tensor& self, int64_t dim, bool keepdim,
                   std::optional<ScalarType> dtype, Tensor& out) {
  ETX_CHECK(context, dtype.has_value() || sums_into(self, out), InvalidArgument,
            "out must have a floating dtype when self has one");
  return fold<Product>(context, self, wide(out.scalar_type()), {IntList(&dim, 1), keepdim}, false,
                       out, dtype);
}

Error any(Context& context, const Tensor& self, const Fold& dims, const Tensor& out) {
  return fold(context, self, kAny, dims, false, out);
}
Error any_out(Context& context, const Tensor& self, int64_t dim, bool keepdim, Tensor& out) {
  return any(context, self, {IntList(&dim, 1), keepdim}, out);
}
Error any_dims_out(Context& context, const Tensor& self, std::optional<IntList> dim, bool keepdim,
                   Tensor& out) {
  return any(context, self, {dims_or_all(dim), keepdim, dim.has_value()}, out);
}
Error any_all_out(Context& context, const Tensor& self, Tensor& out) {
  return any(context, self, {}, out);
}

constexpr uint64_t kAll = RealBool::bits;

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::sum.IntList_out", sum_out, kAll),
    ETX_KERNEL("aten::mean.out", mean_out, kAll),
    ETX_KERNEL("aten::mean.dtype_out", mean_all_out, kAll),
    ETX_KERNEL("aten::prod.out", prod_out, kAll),
    ETX_KERNEL("aten::prod.int_out", prod_dim_out, kAll),
    ETX_KERNEL("aten::any.out", any_out, kAll),
    ETX_KERNEL("aten::any.dims_out", any_dims_out, kAll),
    ETX_KERNEL("aten::any.all_out", any_all_out, kAll),
};

}  // namespace

ETX_KERNEL_TABLE(reduce_kernels, kRows);

}  // namespace etx::portable
