// SPDX-License-Identifier: BSD-3-Clause
#include "ops/conv/packed_windows.h"

#include "core/min_max.h"

namespace etx::portable {
PackedWindows::PackedWindows(const ConvShape& shape, const PaddedPlanes& planes, const Rows& weight,
                             int64_t threads)
    : shape_(shape),
      planes_(planes),
      threads_(threads),
      depth_(shape.in_channels * shape.taps()),
      columns_(shape.out_size()) {
  dots_.m = shape.out_channels, dots_.depth = depth_, dots_.n = columns_;
  dots_.of_pairs = weight.of_pairs;
  if (weight.halves == nullptr && !weight.in_tiles())
    dots_.count = dotted(dots_.m, depth_, columns_);
  columns_ -= dots_.count;
  const int64_t tile = isa().tile_columns, vector = isa().vector_floats;
  const int64_t panels = divide_up(columns_, tile), share = divide_up(columns_, vector);
  constexpr int64_t kFewThreads = 4;
  // Windows that one thread packs are dear to another: a fifth more work for one is not, nor is it
  // that a few threads pack them all.
  by_columns_ = threads == 1 || 5 * threads * divide_up(share, threads) * vector <= 6 * columns_;
  is_shared_ = !by_columns_ && threads > kFewThreads;
  block_ = panels * tile;
  if (by_columns_) block_ = min(block_, column_block(4 * depth_, panels < 8 ? 4 : 2));
  // In vectors that are multiplied with one row.
  constexpr int64_t kPackRow = 6, kPackRun = 4;
  const int64_t runs = tile / shape.out[2] + 1, whole = weight.of_pairs ? tile : vector;
  const int64_t swept = divide_up(planes.sweep(shape.out), whole) * whole;
  // A fifth of a small tile's time, in a sweep, goes into finding where windows lie.
  const int64_t sought = has_small_tiles() ? columns_ / 5 : 0;
  const int64_t spared = swept - divide_up(columns_, vector) * vector - dots_.count + sought;
  constexpr int64_t kTilesAtOnce = 8;  // Next to vectors of pairs.
  const int64_t product = weight.in_tiles() ? kTilesAtOnce * vector : vector;
  pays_ = !shape.transposed && columns_ >= vector &&
          panels * (kPackRow + kPackRun * runs) < spared * shape.out_channels / product;
}

int64_t PackedWindows::point(int64_t output) const {
  const int64_t line = output / shape_.out[2];
  return (line / shape_.out[1] * planes_.length[1] + line % shape_.out[1]) * planes_.length[2] +
         output % shape_.out[2];
}

[[gnu::noinline]] void PackedWindows::pack_panels(const float* planes, const int32_t* index,
                                                  int64_t begin, int64_t end, float* panels) const {
  constexpr int64_t kMostColumns = 32;
  const int64_t tile = isa().tile_columns;
  for (int64_t first = begin; first < end; first += tile, panels += tile * depth_) {
    PanelRun runs[kMostColumns];
    int64_t count = 0;
    for (int64_t i = first, last = min(first + tile, end); i < last;) {
      const int64_t length = min(last - i, shape_.out[2] - i % shape_.out[2]);
      runs[count++] = {static_cast<int32_t>(point(i)), static_cast<int32_t>(length)};
      i += length;
    }
    isa().pack_runs(planes, index, depth_, runs, count, panels);
  }
}

void PackedWindows::run(Context& context, const Gemm& g, const float* planes, const int32_t* index,
                        float* memory) const {
  const int64_t tile = isa().tile_columns, rows = shape_.out_channels;
  DottedColumns dots = dots_;
  dots.a = g.a, dots.bias = g.bias, dots.c = g.c, dots.memory = memory + panel_floats();
  for (int64_t i = 0; i < dots.count; ++i) {
    const float* const from = planes + point(columns_ + i);
    for (int64_t k = 0; k < depth_; ++k) dots.put(i, k, from[index[k]]);
  }
  if (is_shared_) {
    constexpr int64_t kFewRows = 4096;  // Sooner packed than a thread is woken.
    const int64_t panels = divide_up(columns_, tile);
    const int64_t share = panels * depth_ < kFewRows ? panels : divide_up(panels, threads_);
    context.parallel_for(0, panels, share, [&](int64_t begin, int64_t end) {
      pack_panels(planes, index, begin * tile, min(end * tile, columns_),
                  memory + begin * tile * depth_);
    });
  }
  context.parallel_for(0, threads_, 1, [&](int64_t first_job, int64_t last_job) {
    for (int64_t job = first_job; job < last_job; ++job) {
      const Part mine(rows, 1, job, threads_),
          columns(columns_, isa().vector_floats, job, threads_);
      Gemm part = g;
      part.b_index = nullptr, part.b_stride = tile, part.panel_stride = tile * depth_;
      part.depth = depth_, part.column_block = block_;
      if (g.scratch != nullptr) part.scratch = g.scratch + gemm_scratch(depth_, job);
      float* const panels = memory + (is_shared_ ? 0 : job * block_ * depth_);
      part.b = panels;
      if (!by_columns_) {
        if (!is_shared_) pack_panels(planes, index, 0, columns_, panels);
        part.column_end = columns_;
        part.row_begin = mine.begin, part.row_end = mine.end;
        dots.run_beside(part, mine.begin, mine.end);
        continue;
      }
      if (columns.begin >= columns.end) dots.run(mine.begin, mine.end);
      for (int64_t begin = columns.begin; begin < columns.end; begin += block_) {
        const int64_t end = min(begin + block_, columns.end);
        pack_panels(planes, index, begin, end, panels);
        part.c = g.c + begin, part.column_end = end - begin;
        dots.run_beside(part, mine.begin, end == columns.end ? mine.end : 0);
      }
    }
  });
}

}  // namespace etx::portable
