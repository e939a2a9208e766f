// SPDX-License-Identifier: BSD-3-Clause
#include "ops/reduce/fold.h"

#include <cstring>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kGrain = 32768;
/// Rows of a column that are summed before they are added to the total, for precision.
constexpr int64_t kRun = 128;

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
ScalarType first_dtype(const Tensor& in, const Asked& asked, const Folding& folding,
                       const Tensor& out) {
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
  const int64_t n = min(rest, kBlock);
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

}  // namespace

Error fold(Context& context, const Tensor& in, const Folding& folding, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked) {
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
    const int64_t width = min(plan.kept.inner(), kBlock);
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

}  // namespace etx::portable
