// SPDX-License-Identifier: BSD-3-Clause
/// The largest or smallest element of each line, and where it lies.

#include <limits>
#include <optional>

#include "core/dispatch.h"
#include "core/loops.h"
#include "isa/row_loops.h"
#include "ops/reduce/fold.h"

namespace etx::portable {
namespace {

struct Greater {
  template <typename C>
  static bool better(C a, C b) {
    return a > b;
  }
};
struct Less {
  template <typename C>
  static bool better(C a, C b) {
    return a < b;
  }
};

/// Takes the best of all elements that fill vectors into `lanes`; returns how many these are.
template <bool least, typename C>
size_t take_vectors(const C* x, size_t n, C* lanes) {
  if constexpr (std::is_same_v<C, double>) {
    return isa().extreme_double(x, n, least ? uint64_t{1} << 63 : 0, lanes);
  } else if constexpr (sizeof(C) == 8) {
    return isa().extreme_long(x, n, least ? UINT64_MAX : 0, lanes);
  } else {
    return isa().extreme_int(x, n, least ? UINT32_MAX : 0, lanes);
  }
}

/// The best of `start` and x; NaN where there is one.
template <typename Order, typename C>
C best_of(const C* x, int64_t n, C start) {
  constexpr bool least = std::is_same_v<Order, Less>;
  if constexpr (std::is_same_v<C, float>) {
    return least ? isa().min(x, static_cast<size_t>(n)) : isa().max(x, static_cast<size_t>(n));
  } else if constexpr (sizeof(C) >= 4) {
    constexpr int64_t kWidth = 64 / sizeof(C);
    C lanes[kWidth];
    for (C& lane : lanes) lane = start;
    const auto done = static_cast<int64_t>(take_vectors<least>(x, static_cast<size_t>(n), lanes));
    C best = start;
    for (int64_t i = -kWidth; i < n - done; ++i) {
      const C v = i < 0 ? lanes[i + kWidth] : x[done + i];
      if (Order::better(v, best) || v != v) best = v;
    }
    return best;
  } else {
    const auto better = [](C a, C b) { return Order::better(b, a) ? b : a; };
    return in_lanes(x, n, start, better, better);
  }
}

/// Where the first NaN lies, or the first element that is `best`, which there is.
template <typename C>
int64_t first_of(const C* x, int64_t n, C best) {
  constexpr int64_t kStep = 16;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    C found{};
    for (int64_t j = i; j < i + kStep; ++j) found = x[j] == best || x[j] != x[j] ? C{1} : found;
    if (found != 0) break;
  }
  while (i < n && !(x[i] == best || x[i] != x[i])) ++i;
  return i;
}

/// What `find` writes, and from what.
struct Lines {
  const Reduction& plan;
  const Reader& reader;
  int64_t* index;
  const Writer* values;

  template <typename Order, typename C>
  [[gnu::noinline]] void find(int64_t begin, int64_t end) const {
    plan.kept.for_each(begin, end, [&](const int64_t* offsets) {
      C best{};
      int64_t position = 0;
      int64_t seen = 0;
      reader.for_each_folded(plan, offsets[0], [&](const void* piece, int64_t n) {
        const C* x = static_cast<const C*>(piece);
        if (seen == 0) best = x[0];
        const auto take = [&](int64_t i) {
          best = x[i];
          position = seen + i;
        };
        const auto is_better = [&](C v) {
          return Order::better(v, best) || (v != v && best == best);
        };
        if (!kIsSmall && n >= kVector) {
          const C top = best_of<Order>(x, n, x[0]);
          if (is_better(top)) take(first_of(x, n, top));
        } else {
          for (int64_t i = 0; i < n; ++i) {
            if (is_better(x[i])) take(i);
          }
        }
        seen += n;
      });
      index[offsets[1]] = position;
      if (values != nullptr) values->write(offsets[1], &best);
    });
  }
};

/// The first best element of each line; a NaN is better than every number. `values` may be null.
template <typename Order>
Error find(Context& context, const Tensor& in, Fold fold, const Tensor* values,
           const Tensor& indices) {
  ETX_CHECK(context, RealBool::contains(in.scalar_type()), NotSupported,
            "the operator takes bool, integers and floating dtypes");
  ETX_CHECK(context, indices.scalar_type() == ScalarType::Long, InvalidArgument,
            "indices must have dtype int64");
  ETX_CHECK(context, values == nullptr || values->scalar_type() == in.scalar_type(),
            InvalidArgument, "values must have the dtype of self");
  fold.in_index_order = true;
  Reduction plan;
  const Tensor outs[] = {indices, values == nullptr ? indices : *values};
  ETX_TRY(plan_reduction(context, in, fold, outs, plan));
  ETX_CHECK(context, plan.count > 0 || indices.numel() == 0, InvalidArgument,
            "the dimension to reduce must not be empty");
  if (indices.numel() == 0) return Error::Ok;
  const ScalarType as = wide(in.scalar_type());
  const Reader reader(in, as);
  const Writer writer(outs[1], as);
  const Lines lines{plan, reader, indices.mutable_data_ptr<int64_t>(),
                    values == nullptr ? nullptr : &writer};
  return dispatch<is_computed>(context, Computed{}, as, [&](auto tag) {
    const auto run = [&](int64_t begin, int64_t end) {
      lines.find<Order, typename decltype(tag)::type>(begin, end);
    };
    const int64_t grain = 1 + 32768 / (plan.count + 1);
    context.parallel_for(0, plan.results(), grain, Callback<int64_t, int64_t>(run));
    return Error::Ok;
  });
}

template <typename Order>
Error find_index(Context& context, const Tensor& self, std::optional<int64_t> dim, bool keepdim,
                 const Tensor& out) {
  const int64_t d = dim.value_or(0);
  return find<Order>(context, self, {dim.has_value() ? IntList(&d, 1) : IntList(), keepdim},
                     nullptr, out);
}

Error argmax_out(Context& context, const Tensor& self, std::optional<int64_t> dim, bool keepdim,
                 Tensor& out) {
  return find_index<Greater>(context, self, dim, keepdim, out);
}
Error argmin_out(Context& context, const Tensor& self, std::optional<int64_t> dim, bool keepdim,
                 Tensor& out) {
  return find_index<Less>(context, self, dim, keepdim, out);
}
Error max_dim_out(Context& context, const Tensor& self, int64_t dim, bool keepdim, Tensor& max,
                  Tensor& max_values) {
  return find<Greater>(context, self, {IntList(&dim, 1), keepdim}, &max, max_values);
}
Error min_dim_out(Context& context, const Tensor& self, int64_t dim, bool keepdim, Tensor& min,
                  Tensor& min_indices) {
  return find<Less>(context, self, {IntList(&dim, 1), keepdim}, &min, min_indices);
}

template <typename C>
struct Maximum {
  static constexpr RowLoop kRows = &Isa::maximum;
  static C start() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::min();
    else
      return -std::numeric_limits<C>::infinity();
  }
  static C pair(C a, C b) { return maximum(a, b); }
  static C run(const C* x, int64_t n) { return best_of<Greater>(x, n, start()); }
};

template <typename C>
struct Minimum {
  static constexpr RowLoop kRows = &Isa::minimum;
  static C start() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::max();
    else
      return std::numeric_limits<C>::infinity();
  }
  static C pair(C a, C b) { return minimum(a, b); }
  static C run(const C* x, int64_t n) { return best_of<Less>(x, n, start()); }
};

/// Integers of fewer bits than int64 are compared as they are.
template <template <typename> class Op>
Error fold_extreme(Context& context, const Tensor& in, const Fold& dims, const Tensor& out) {
  static constexpr Folding kNarrow[] = {make_folding<Op<int32_t>, int32_t>(ScalarType::Int),
                                        make_folding<Op<int16_t>, int16_t>(ScalarType::Short),
                                        make_folding<Op<int8_t>, int8_t>(ScalarType::Char),
                                        make_folding<Op<uint8_t>, uint8_t>(ScalarType::Byte)};
  if constexpr (!kIsSmall) {
    for (const Folding& narrow : kNarrow) {
      if (narrow.as == in.scalar_type()) return fold(context, in, narrow, dims, false, out);
    }
  }
  return fold<Op>(context, in, wide(in.scalar_type()), dims, false, out);
}

/// The extreme of nothing is an error.
Error check_extreme(Context& context, const Tensor& self, const Tensor& out, const Fold& dims) {
  ETX_CHECK(context, self.scalar_type() == out.scalar_type(), InvalidArgument,
            "out must have the dtype of self");
  bool folds_nothing = dims.dims.empty() && self.numel() == 0;
  for (const int64_t dim : dims.dims) {
    const int64_t d = dim < 0 ? dim + self.dim() : dim;
    folds_nothing |= d >= 0 && d < self.dim() && self.size(static_cast<ssize_t>(d)) == 0;
  }
  ETX_CHECK(context, !folds_nothing, InvalidArgument, "the dimensions to reduce must not be empty");
  return Error::Ok;
}

Error amax_out(Context& context, const Tensor& self, IntList dim, bool keepdim, Tensor& out) {
  ETX_TRY(check_extreme(context, self, out, {dim, keepdim}));
  return fold_extreme<Maximum>(context, self, {dim, keepdim}, out);
}
Error amin_out(Context& context, const Tensor& self, IntList dim, bool keepdim, Tensor& out) {
  ETX_TRY(check_extreme(context, self, out, {dim, keepdim}));
  return fold_extreme<Minimum>(context, self, {dim, keepdim}, out);
}
Error max_all_out(Context& context, const Tensor& self, Tensor& out) {
  return amax_out(context, self, {}, false, out);
}
Error min_all_out(Context& context, const Tensor& self, Tensor& out) {
  return amin_out(context, self, {}, false, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::argmax.out", argmax_out, RealBool::bits),
    ETX_KERNEL("aten::argmin.out", argmin_out, RealBool::bits),
    ETX_KERNEL("aten::max.dim_max", max_dim_out, RealBool::bits),
    ETX_KERNEL("aten::min.dim_min", min_dim_out, RealBool::bits),
    ETX_KERNEL("aten::amax.out", amax_out, RealBool::bits),
    ETX_KERNEL("aten::amin.out", amin_out, RealBool::bits),
    ETX_KERNEL("aten::max.unary_out", max_all_out, RealBool::bits),
    ETX_KERNEL("aten::min.unary_out", min_all_out, RealBool::bits),
};

}  // namespace

ETX_KERNEL_TABLE(arg_min_max_kernels, kRows);

}  // namespace etx::portable
