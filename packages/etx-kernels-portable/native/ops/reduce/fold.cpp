// SPDX-License-Identifier: BSD-3-Clause
#include "ops/reduce/fold.h"

#include <cstring>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/shape.h"

namespace etx::portable {
namespace {

constexpr int64_t kBlock = kIsSmall ? 256 : 1024;
constexpr int64_t kGrain = 32768;
/// Rows of a column that are summed before they are added to the total, for precision.
constexpr int64_t kRun = 128;

/// totals[i] /= count.
void divide(const Folding& folding, void* totals, int64_t n, int64_t count) {
  if (!kIsSmall && folding.as == ScalarType::Float) {
    float* const sums = static_cast<float*>(totals);
    return isa().div_scalar(sums, static_cast<float>(count), sums, static_cast<size_t>(n));
  }
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

/// Results whose elements are rows that follow each other, those of several results, too: `from`
/// and `to` are where those of the first line lie.
void fold_row_by_row(const Job& job, int64_t from, int64_t to, int64_t begin, int64_t end) {
  constexpr int64_t kLines = 64;
  const Reduction& plan = job.plan;
  const int64_t length = plan.folded.inner(), stride = plan.kept.stride[0][1];
  const bool is_read = job.reader.in_place() == nullptr;
  const int64_t lines = is_read ? min(kLines, Reader::kBlock / length) : kLines;
  for (int64_t i = begin; i < end; i += lines) {
    alignas(64) unsigned char totals[kLines * 8];
    const int64_t n = min(end - i, lines);
    job.folding.start(totals, n);
    plan.folded.for_each_outer(0, plan.folded.outer(), [&](const int64_t* folded) {
      job.reader.for_each_piece(
          from + i * length + folded[0], 1, n * length,
          [&](const void* x, int64_t) { job.folding.run(totals, x, length, n); });
    });
    job.finish(totals, n);
    job.writer.write(to + i * stride, stride, totals, n);
  }
}

/// One result after the other, each from pieces of the input.
void fold_rows(const Job& job, int64_t begin, int64_t end) {
  const Reduction& plan = job.plan;
  const int64_t inner = plan.kept.inner();
  const bool is_read = job.reader.in_place() == nullptr;
  const bool are_several =
      is_read ? plan.folded.inner() <= Reader::kBlock / 2 : plan.folded.levels > 1;
  if (!kIsSmall && are_several && plan.count > 0 && plan.kept.levels > 0 &&
      plan.folded.stride[0][0] == 1 && plan.kept.stride[0][0] == plan.folded.inner()) {
    for (int64_t i = begin, next; i < end; i = next) {
      const int64_t line = i / inner;
      next = min(end, (line + 1) * inner);
      plan.kept.for_each_outer(line, line + 1, [&](const int64_t* offsets) {
        fold_row_by_row(job, offsets[0], offsets[1], i - line * inner, next - line * inner);
      });
    }
    return;
  }
  plan.kept.for_each(begin, end, [&](const int64_t* offsets) {
    Element total;
    job.folding.start(total.bytes, 1);
    job.reader.for_each_folded(
        plan, offsets[0], [&](const void* x, int64_t n) { job.folding.run(total.bytes, x, n, 1); });
    job.finish(total.bytes, 1);
    job.writer.write(offsets[1], total.bytes);
  });
}

/// Results so few that a row of them fills no vector, and the elements of all follow each other.
bool is_narrow(const Job& job, const Tensor& in, const Tensor& out) {
  constexpr int64_t kNarrow = 16;
  const Reduction& plan = job.plan;
  const int64_t inner = plan.kept.inner();
  return !kIsSmall && in.scalar_type() == job.folding.as && out.scalar_type() == job.folding.as &&
         inner < kNarrow && plan.folded.levels == 1 && plan.folded.stride[0][0] == inner &&
         plan.kept.stride[0][1] == 1;
}

/// Many rows of results side by side, then these by halves.
void fold_narrow(const Job& job, int64_t item) {
  const Reduction& plan = job.plan;
  const int64_t inner = plan.kept.inner(),
                size = static_cast<int64_t>(element_size(job.folding.as));
  plan.kept.for_each_outer(item, item + 1, [&](const int64_t* offsets) {
    alignas(64) unsigned char total[kBlock * 8];
    int64_t rows = 1;
    while (2 * rows * inner <= kBlock && 2 * rows <= plan.count) rows *= 2;
    job.folding.start(total, rows * inner);
    for (int64_t i = 0; i < plan.count; i += rows) {
      const int64_t n = min(plan.count - i, rows) * inner;
      job.reader.for_each_piece(offsets[0] + i * inner, 1, n,
                                [&](const void* x, int64_t) { job.folding.pair(total, x, n); });
    }
    while (rows > 1) {
      rows /= 2;
      job.folding.pair(total, total + rows * inner * size, rows * inner);
    }
    job.finish(total, inner);
    job.writer.write(offsets[1], 1, total, inner);
  });
}

/// True where a loop of lines reads the input and writes the results as they lie.
bool is_of_lines(const Job& job, const Tensor& out) {
  constexpr int64_t kFew = 8, kNear = 512;
  const Nest<2>& kept = job.plan.kept;
  const Nest<1>& folded = job.plan.folded;
  if (kIsSmall || job.folding.taps == nullptr || job.reader.in_place() == nullptr) return false;
  if (out.scalar_type() != ScalarType::Float || folded.levels != 1) return false;
  if (kept.levels > 2 || kept.stride[0][1] != 1) return false;
  if (job.mean && kept.levels == 2 && kept.stride[1][1] != kept.inner()) return false;
  const int64_t narrowest = isa().vector_floats > 4 ? 2 : 4;
  const bool are_few = job.plan.count <= kFew;
  return are_few ||
         (kept.inner() >= narrowest && job.plan.count <= kRun && folded.stride[0][0] <= kNear);
}

/// Lines of results, or some of the only line.
void fold_lines(Context& context, const Job& job, float* y) {
  const Reduction& plan = job.plan;
  const bool is_one = plan.kept.levels == 1;
  const int64_t inner = plan.kept.inner(), each = is_one ? 1 : inner;
  const int64_t from = is_one ? 1 : plan.kept.stride[1][0],
                to = is_one ? 1 : plan.kept.stride[1][1];
  const float* const x = reinterpret_cast<const float*>(job.reader.in_place());
  const int64_t work = plan.count * each, all = is_one ? inner : plan.kept.outer();
  context.parallel_for(0, all, 1 + kGrain / work, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    const FoldedLines lines = is_one ? FoldedLines{1, n, 0, 0} : FoldedLines{n, inner, from, to};
    (isa().*job.folding.taps)(x + begin * from, plan.folded.stride[0][0], plan.count,
                              y + begin * to, lines);
    job.finish(y + begin * to, n * each);
  });
}

int64_t blocks_of(const Reduction& plan) { return (plan.kept.inner() + kBlock - 1) / kBlock; }

/// y = the `rows` lines of x that lie `step` apart, joined; y is zero where these are added up.
void join_rows(TapLoop taps, const void* x, int64_t step, int64_t rows, void* y, int64_t n) {
  const float* const from = static_cast<const float*>(x);
  float* const to = static_cast<float*>(y);
  int64_t done = 0;
  if (taps == &Isa::sum_taps) {
    done = static_cast<int64_t>(isa().add_rows(from, step, rows, to, static_cast<size_t>(n)));
  }
  if (done < n) (isa().*taps)(from + done, step, rows, to + done, {1, n - done, 0, 0});
}

/// Neighbouring results together: whole rows of the input are added up.
void fold_columns(const Job& job, int64_t item) {
  const Reduction& plan = job.plan;
  const int64_t blocks = blocks_of(plan);
  const int64_t first = item % blocks * kBlock;
  const int64_t rest = plan.kept.inner() - first;
  const int64_t n = min(rest, kBlock);
  const int64_t size = static_cast<int64_t>(element_size(job.folding.as));
  const char* const in_place = job.reader.in_place();
  const int64_t step = plan.folded.stride[0][0];
  const bool reads_rows = !kIsSmall && in_place == nullptr && plan.folded.levels == 1 &&
                          step == n && n <= Reader::kBlock / 2;
  const bool in_rows = reads_rows || (in_place != nullptr && plan.folded.levels == 1);
  const TapLoop taps = kIsSmall || !in_rows ? nullptr : job.folding.taps;
  plan.kept.for_each_outer(item / blocks, item / blocks + 1, [&](const int64_t* offsets) {
    alignas(64) unsigned char total[kBlock * 8];
    alignas(64) unsigned char run[kBlock * 8];
    const bool is_short = plan.count <= kRun;
    void* const sum = is_short ? total : run;
    if (!kIsSmall && (reads_rows || taps != nullptr)) {
      const int64_t most = reads_rows ? min(kRun, Reader::kBlock / n) : kRun;
      for (int64_t row = 0; row < plan.count; row += most) {
        const int64_t rows = min(plan.count - row, most);
        unsigned char* const to = row == 0 ? total : run;
        job.reader.for_each_piece(offsets[0] + first + row * step, 1, reads_rows ? rows * n : n,
                                  [&](const void* x, int64_t) {
                                    job.folding.start(to, n);
                                    if (taps != nullptr)
                                      return join_rows(taps, x, step, rows, to, n);
                                    const char* at = static_cast<const char*>(x);
                                    for (int64_t r = 0; r < rows; ++r, at += n * size)
                                      job.folding.pair(to, at, n);
                                  });
        if (row > 0) job.folding.pair(total, run, n);
      }
    } else {
      job.folding.start(total, n);
      if (!is_short) job.folding.start(run, n);
      int64_t rows = 0;
      plan.folded.for_each(0, plan.count, [&](const int64_t* folded) {
        const int64_t begin = offsets[0] + first + folded[0];
        char* at = static_cast<char*>(sum);
        if (in_place != nullptr) {
          job.folding.pair(at, in_place + begin * size, n);
        } else {
          job.reader.for_each_piece(begin, 1, n, [&](const void* x, int64_t length) {
            job.folding.pair(at, x, length);
            at += length * size;
          });
        }
        if (is_short || ++rows % kRun != 0) return;
        job.folding.pair(total, run, n);
        job.folding.start(run, n);
      });
      if (!is_short) job.folding.pair(total, run, n);
    }
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
  const int64_t rank = in.dim(), first = rank - static_cast<int64_t>(dims.dims.size());
  uint32_t seen = 0;
  int64_t length = 1;
  for (const int64_t dim : dims.dims) {
    const int64_t d = dim < 0 ? dim + rank : dim;
    if (d < first || d < 0 || d >= rank || (seen >> d & 1u) != 0) return 0;
    seen |= 1u << d;
    length *= in.size(static_cast<ssize_t>(d));
  }
  return length;
}

Error resize_to_rows(Context& context, const Tensor& in, const Fold& dims, const Tensor& out) {
  Shape shape;
  const ssize_t folded = static_cast<ssize_t>(dims.dims.size());
  for (ssize_t d = 0; d < in.dim(); ++d) {
    const bool is_folded = folded == 0 || d >= in.dim() - folded;
    if (!is_folded || dims.keepdim) shape.push(is_folded ? 1 : in.size(d));
  }
  return resize_out(context, out, shape);
}

void fold_neighbours(Context& context, const Tensor& in, const Folding& folding, int64_t length,
                     bool mean, const Tensor& out) {
  const size_t size = element_size(folding.as);
  const char* const first = in.const_data_ptr<char>();
  char* const to = out.mutable_data_ptr<char>();
  constexpr int64_t kShort = 16;  // Up to here, rows are turned: sums of three are made as fast.
  const int64_t shortest = folding.taps == &Isa::sum_taps ? 4 : 2;
  const bool turns = folding.taps != nullptr && length >= shortest && length <= kShort;
  const auto lines = [&](int64_t begin, int64_t end) {
    constexpr int64_t kLines = 64;
    alignas(64) unsigned char totals[kLines * 8];
    for (int64_t i = begin; i < end; i += kLines) {
      const int64_t n = min(end - i, kLines);
      folding.start(totals, n);
      const char* const rows = first + static_cast<size_t>(i * length) * size;
      if (length == 1) {
        folding.pair(totals, rows, n);
      } else if (!kIsSmall && turns) {
        alignas(64) float turned[kShort * kLines];
        isa().store_transposed(reinterpret_cast<const float*>(rows), length, n, length, turned,
                               kLines);
        (isa().*folding.taps)(turned, kLines, length, reinterpret_cast<float*>(totals),
                              {1, n, 0, 0});
      } else {
        folding.run(totals, rows, length, n);
      }
      if (mean) divide(folding, totals, n, length);
      std::memcpy(to + static_cast<size_t>(i) * size, totals, static_cast<size_t>(n) * size);
    }
  };
  if constexpr (kIsSmall) {
    lines(0, out.numel());
  } else {
    context.parallel_for(0, out.numel(), 1 + kGrain / length, lines);
  }
}

/// True where dimensions of one element are all that keeps the elements of a result apart.
bool are_neighbours(const Job& job, const Tensor& out) {
  const Nest<2>& kept = job.plan.kept;
  const Nest<1>& folded = job.plan.folded;
  const int64_t count = job.plan.count;
  const bool are_rows = count == 1 || (folded.levels == 1 && folded.stride[0][0] == 1);
  return job.reader.in_place() != nullptr && out.scalar_type() == job.folding.as && count > 0 &&
         are_rows && kept.levels == 1 && kept.stride[0][0] == count && kept.stride[0][1] == 1;
}

}  // namespace

Error fold(Context& context, const Tensor& in, const Folding& folding, const Fold& dims, bool mean,
           const Tensor& out, const Asked& asked) {
  const int64_t length = row_length(in, folding.as, dims, out);
  if (length > 0 && (in.numel() <= kGrain || !kIsSmall) && out.is_contiguous()) {
    ETX_TRY(resize_to_rows(context, in, dims, out));
    fold_neighbours(context, in, folding, length, mean, out);
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
  if (!kIsSmall && are_neighbours(job, out)) {
    fold_neighbours(context, in, folding, plan.count, mean, out);
    return Error::Ok;
  }
  const bool by_columns = plan.count > 1 && plan.kept.levels > 0 && plan.kept.stride[0][0] == 1;
  if (by_columns && is_of_lines(job, out)) {
    fold_lines(context, job, out.mutable_data_ptr<float>());
  } else if (by_columns && is_narrow(job, in, out)) {
    const int64_t outer = plan.kept.outer(), each = plan.count * plan.kept.inner();
    context.parallel_for(0, outer, 1 + kGrain / each, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fold_narrow(job, i);
    });
  } else if (by_columns) {
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
