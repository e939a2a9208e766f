// SPDX-License-Identifier: BSD-3-Clause
/// Folds: sum, mean, prod, amax, amin, max, min, any.

#include <cstring>
#include <limits>
#include <optional>

#include "core/dispatch.h"
#include "core/loops.h"
#include "core/shape.h"
#include "ops/reduce/reduction.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kGrain = 32768;
/// Up to here, adding one by one costs less than calling the vector code.
constexpr int64_t kShort = 8;

/// Rows of a column that are summed before they are added to the total, for precision.
constexpr int64_t kRun = 128;

template <typename C>
struct Sum {
  static C start() { return 0; }
  static C pair(C a, C b) { return wrap_add(a, b); }
  static C run(const C* x, int64_t n) {
    if constexpr (std::is_same_v<C, float>) {
      if (n > kShort) return isa().sum(x, static_cast<size_t>(n));
    }
    C total = 0;
    for (int64_t i = 0; i < n; ++i) total = wrap_add(total, x[i]);
    return total;
  }
};

template <typename C>
struct Product {
  static C start() { return 1; }
  static C pair(C a, C b) { return wrap_mul(a, b); }
  static C run(const C* x, int64_t n) {
    C total = 1;
    for (int64_t i = 0; i < n; ++i) total = wrap_mul(total, x[i]);
    return total;
  }
};

template <typename C>
struct Maximum {
  static C start() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::min();
    else
      return -std::numeric_limits<C>::infinity();
  }
  static C pair(C a, C b) { return maximum(a, b); }
  static C run(const C* x, int64_t n) {
    if constexpr (std::is_same_v<C, float>) return isa().max(x, static_cast<size_t>(n));
    C best = start();
    for (int64_t i = 0; i < n; ++i) best = maximum(best, x[i]);
    return best;
  }
};

template <typename C>
struct Minimum {
  static C start() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::max();
    else
      return std::numeric_limits<C>::infinity();
  }
  static C pair(C a, C b) { return minimum(a, b); }
  static C run(const C* x, int64_t n) {
    if constexpr (std::is_same_v<C, float>) return isa().min(x, static_cast<size_t>(n));
    C best = start();
    for (int64_t i = 0; i < n; ++i) best = minimum(best, x[i]);
    return best;
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

/// A fold over elements of dtype `as`.
struct Folding {
  ScalarType as;
  /// acc[i] = what nothing folds to.
  void (*start)(void* acc, int64_t n);
  /// acc[0] = pair(acc[0], x[0], …, x[n - 1]).
  void (*run)(void* acc, const void* x, int64_t n);
  /// acc[i] = pair(acc[i], x[i]).
  void (*pair)(void* acc, const void* x, int64_t n);
};

template <typename Op, typename C>
constexpr Folding make_folding(ScalarType as) {
  return {as,
          [](void* acc, int64_t n) {
            for (int64_t i = 0; i < n; ++i) static_cast<C*>(acc)[i] = Op::start();
          },
          [](void* acc, const void* x, int64_t n) {
            C& total = *static_cast<C*>(acc);
            total = Op::pair(total, Op::run(static_cast<const C*>(x), n));
          },
          [](void* acc, const void* x, int64_t n) {
            C* total = static_cast<C*>(acc);
            const C* values = static_cast<const C*>(x);
            for (int64_t i = 0; i < n; ++i) {
              total[i] = Op::pair(total[i], load_element(values + i));
            }
          }};
}

template <template <typename> class Op>
const Folding& folding(ScalarType as) {
  static constexpr Folding kLong = make_folding<Op<int64_t>, int64_t>(ScalarType::Long);
  static constexpr Folding kFloat = make_folding<Op<float>, float>(ScalarType::Float);
  static constexpr Folding kDouble = make_folding<Op<double>, double>(ScalarType::Double);
  return as == ScalarType::Long ? kLong : as == ScalarType::Float ? kFloat : kDouble;
}
constexpr Folding kAny = make_folding<Any, bool>(ScalarType::Bool);

/// totals[i] /= count.
void divide(const Folding& folding, void* totals, int64_t n, int64_t count) {
  for (int64_t i = 0; i < n; ++i) {
    if (folding.as == ScalarType::Float) {
      static_cast<float*>(totals)[i] /= static_cast<float>(count);
    } else {
      static_cast<double*>(totals)[i] /= static_cast<double>(count);
    }
  }
}

/// A dtype that is asked for is that of the elements: they are converted before they are folded.
ScalarType first_dtype(const Tensor& in, const std::optional<ScalarType>& asked,
                       const Folding& folding, const Tensor& out) {
  return asked.has_value() && in.scalar_type() != out.scalar_type() ? out.scalar_type()
                                                                    : folding.as;
}

struct Job {
  const Reduction& plan;
  const Folding& folding;
  Reader reader;
  Writer writer;
  bool mean;

  void finish(void* totals, int64_t n) const {
    if (mean) divide(folding, totals, n, plan.count);
  }
};

/// One result after the other, each from pieces of the input.
void fold_rows(const Job& job, int64_t begin, int64_t end) {
  job.plan.kept.for_each(begin, end, [&](const int64_t* offsets) {
    Element total;
    job.folding.start(total.bytes, 1);
    job.reader.for_each_folded(job.plan, offsets[0], [&](const void* x, int64_t n) {
      job.folding.run(total.bytes, x, n);
    });
    job.finish(total.bytes, 1);
    job.writer.write(offsets[1], total.bytes);
  });
}

int64_t blocks_of(const Reduction& plan) { return (plan.kept.inner() + kBlock - 1) / kBlock; }

/// Neighbouring results together: whole rows of the input are added up.
void fold_columns(const Job& job, int64_t item) {
  const Reduction& plan = job.plan;
  const int64_t blocks = blocks_of(plan);
  const int64_t first = item % blocks * kBlock;
  const int64_t rest = plan.kept.inner() - first;
  const int64_t n = rest < kBlock ? rest : kBlock;
  plan.kept.for_each_outer(item / blocks, item / blocks + 1, [&](const int64_t* offsets) {
    alignas(64) unsigned char total[kBlock * 8];
    alignas(64) unsigned char run[kBlock * 8];
    job.folding.start(total, n);
    job.folding.start(run, n);
    int64_t length = 0;
    plan.folded.for_each(0, plan.count, [&](const int64_t* folded) {
      job.reader.for_each_piece(offsets[0] + first + folded[0], 1, n,
                                [&](const void* x, int64_t) { job.folding.pair(run, x, n); });
      if (++length % kRun != 0) return;
      job.folding.pair(total, run, n);
      job.folding.start(run, n);
    });
    job.folding.pair(total, run, n);
    job.finish(total, n);
    const int64_t stride = plan.kept.stride[0][1];
    job.writer.write(offsets[1] + first * stride, stride, total, n);
  });
}

/// The elements of each result when these are neighbours and nothing is converted, else 0.
int64_t row_length(const Tensor& in, ScalarType as, const Fold& dims, const Tensor& out) {
  if (in.scalar_type() != as || out.scalar_type() != as) return 0;
  if (!in.is_contiguous() || dims.none_if_empty) return 0;
  if (dims.dims.empty()) return in.numel();
  if (dims.dims.size() != 1 || in.dim() == 0) return 0;
  const int64_t dim = dims.dims[0];
  return dim == -1 || dim == in.dim() - 1 ? in.size(-1) : 0;
}

Error resize_to_rows(Context& context, const Tensor& in, const Fold& dims, const Tensor& out) {
  Shape shape;
  for (ssize_t d = 0; d < in.dim(); ++d) {
    const bool folded = dims.dims.empty() || d == in.dim() - 1;
    if (!folded || dims.keepdim) shape.push(folded ? 1 : in.size(d));
  }
  return resize_out(context, out, shape);
}

void fold_neighbours(const Tensor& in, const Folding& folding, int64_t length, bool mean,
                     const Tensor& out) {
  const size_t size = element_size(folding.as);
  const char* x = in.const_data_ptr<char>();
  char* y = out.mutable_data_ptr<char>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    Element total;
    folding.start(total.bytes, 1);
    folding.run(total.bytes, x, length);
    if (mean) divide(folding, total.bytes, 1, length);
    if (size == 4) {
      std::memcpy(y, total.bytes, 4);
    } else {
      std::memcpy(y, total.bytes, size);
    }
    x += static_cast<size_t>(length) * size;
    y += size;
  }
}

using Asked = std::optional<ScalarType>;

Error fold(Context& context, const Tensor& in, const Folding& folding, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked = std::nullopt) {
  const int64_t length = row_length(in, folding.as, dims, out);
  if (length > 0 && in.numel() <= kGrain && out.is_contiguous()) {
    ETX_TRY(resize_to_rows(context, in, dims, out));
    fold_neighbours(in, folding, length, mean, out);
    return Error::Ok;
  }
  ETX_CHECK(context, RealBool::contains(in.scalar_type()) && is_castable(out.scalar_type()),
            NotSupported, "the operator takes bool, integers and floating dtypes");
  Reduction plan;
  const Tensor outs[] = {out};
  ETX_TRY(plan_reduction(context, in, dims, outs, plan));
  if (out.numel() == 0) return Error::Ok;
  const Reader reader(in, first_dtype(in, asked, folding, out), folding.as);
  const Job job{plan, folding, reader, Writer(out, folding.as), mean};
  if (plan.count > 1 && plan.kept.levels > 0 && plan.kept.stride[0][0] == 1) {
    const int64_t width = plan.kept.inner() < kBlock ? plan.kept.inner() : kBlock;
    context.parallel_for(0, plan.kept.outer() * blocks_of(plan), 1 + kGrain / (plan.count * width),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) fold_columns(job, i);
                         });
  } else {
    context.parallel_for(0, plan.results(), 1 + kGrain / (plan.count + 1),
                         [&](int64_t begin, int64_t end) { fold_rows(job, begin, end); });
  }
  return Error::Ok;
}

/// Folds with Op in the type `as`.
template <template <typename> class Op>
Error fold(Context& context, const Tensor& in, ScalarType as, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked = std::nullopt) {
  return fold(context, in, folding<Op>(as), dims, mean, out, asked);
}

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
  return fold<Maximum>(context, self, wide(self.scalar_type()), {dim, keepdim}, false, out);
}
Error amin_out(Context& context, const Tensor& self, IntList dim, bool keepdim, Tensor& out) {
  ETX_TRY(check_extreme(context, self, out, {dim, keepdim}));
  return fold<Minimum>(context, self, wide(self.scalar_type()), {dim, keepdim}, false, out);
}
Error max_all_out(Context& context, const Tensor& self, Tensor& out) {
  return amax_out(context, self, {}, false, out);
}
Error min_all_out(Context& context, const Tensor& self, Tensor& out) {
  return amin_out(context, self, {}, false, out);
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
    ETX_KERNEL("aten::amax.out", amax_out, kAll),
    ETX_KERNEL("aten::amin.out", amin_out, kAll),
    ETX_KERNEL("aten::max.unary_out", max_all_out, kAll),
    ETX_KERNEL("aten::min.unary_out", min_all_out, kAll),
    ETX_KERNEL("aten::any.out", any_out, kAll),
    ETX_KERNEL("aten::any.dims_out", any_dims_out, kAll),
    ETX_KERNEL("aten::any.all_out", any_all_out, kAll),
};

}  // namespace

ETX_KERNEL_TABLE(reduce_kernels, kRows);

}  // namespace etx::portable
