// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/min_max.h"
#include "core/operand.h"
#include "core/scratch.h"
#include "core/shape.h"
#include "core/work.h"
#include "ops/linalg/gemm.h"
#include "ops/linalg/product.h"

namespace etx::portable {
namespace {

/// float16 and bfloat16 are computed in float32.
using Single = Join<Float32, ReducedFloating>;

constexpr float kHidden = -std::numeric_limits<float>::infinity();
/// What masks of finite numbers hide with: its weight is zero next to any other number's.
constexpr float kLowest = std::numeric_limits<float>::lowest();
/// Scores that a thread holds at a time, as far as the rows of a tile allow.
constexpr int64_t kScores = kIsSmall ? 1024 : 64 * 1024;

/// Keys from `begin` to `end`.
struct Keys {
  int64_t begin, end;
};

/// What rows add to their scores, or which of them it hides.
struct Mask {
  const float* added = nullptr;
  const uint8_t* seen = nullptr;   ///< 0 hides.
  int64_t causal = 0;              ///< Row i of so many sees i + 1 keys; 0: all.
  ssize_t rank = 0;                ///< Of the rows: the scores' without the keys.
  int64_t sizes[kMaxRank] = {};    ///< Of the rows.
  int64_t strides[kMaxRank] = {};  ///< Of the mask.

  bool hides(int64_t at, float most) const {
    return added != nullptr ? added[at] <= most : seen != nullptr && seen[at] == 0;
  }

  int64_t offset(int64_t row) const {
    int64_t at = 0;
    for (ssize_t d = rank - 1; d >= 0; --d) {
      at += row % sizes[d] * strides[d];
      row /= sizes[d];
    }
    return at;
  }

  /// All that is seen of the first `keys` from `at` on lies there.
  Keys seen_at(int64_t at, int64_t keys, float most) const {
    Keys found{0, keys};
    while (found.end > 0 && hides(at + found.end - 1, most)) --found.end;
    while (found.begin < found.end && hides(at + found.begin, most)) ++found.begin;
    return found;
  }

  /// All that has a weight for `row` of `keys` lies there.
  Keys seen_by(int64_t row, int64_t keys) const {
    if (causal != 0) keys = min(keys, row % causal + 1);
    const int64_t at = offset(row);
    const Keys found = seen_at(at, keys, kLowest);
    return found.begin < found.end ? found : seen_at(at, keys, kHidden);
  }

  /// The scores of `row` with `keys`.
  void apply(int64_t row, Keys keys, float* scores) const {
    const int64_t n = keys.end - keys.begin, at = offset(row) + keys.begin;
    if (added != nullptr) isa().add(scores, added + at, scores, static_cast<size_t>(n));
    if (seen != nullptr) {
      for (int64_t j = 0; j < n; ++j) scores[j] = seen[at + j] != 0 ? scores[j] : kHidden;
    }
    if (causal == 0) return;
    for (int64_t j = max<int64_t>(row % causal + 1 - keys.begin, 0); j < n; ++j) {
      scores[j] = kHidden;
    }
  }
};

/// Memory of one thread.
struct Room {
  float* scaled;  ///< The rows of the query.
  float* scores;  ///< Of those.
  float* keys;    ///< In panels, as far as `packed` says; for few rows null.
  float* values;  ///< In panels, the same; for few rows what a product needs.
  int64_t batch = -1, packed = 0;
  int64_t mask = -1;  ///< Where that of the last row begins, of what it saw.
  Keys seen{0, 0};
};

/// softmax(scale * query key^T + mask) value, some rows at a time: all scores are never there.
struct Attention {
  int64_t batch, rows, keys, width, values;
  float scale = 1;
  const float* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  ScalarType stored = ScalarType::Float;  ///< Keys and values, which few rows read as they lie.
  float* out = nullptr;
  Mask mask{};
  int64_t block = 0;     ///< Rows at a time.
  bool is_few = false;   ///< Keys and values are read as they lie.
  int64_t stride = 0;    ///< Between scores of two rows.
  int64_t panelled = 0;  ///< Keys in whole panels.
  int64_t columns = 0;   ///< Values in whole panels; 0: they are not packed.

  void plan() {
    constexpr int64_t kFew = 8, kCached = 256;
    const int64_t tile = isa().tile_columns, fit = kScores / max<int64_t>(keys, 1);
    is_few = kIsSmall || rows <= kFew;
    const int64_t most =
        is_few ? min<int64_t>(dot_rows(), kFew) : max<int64_t>(fit, 3 * isa().tile_rows);
    block = max<int64_t>(min(rows, most), 1);
    stride = scratch_stride(keys);
    panelled = divide_up(keys, tile) * tile;
    const bool fit_cache = values % tile == 0 && keys <= kCached;
    columns = kIsSmall || is_few || fit_cache ? 0 : divide_up(values, tile) * tile;
  }
  /// Where a key or value begins: after `at` elements.
  const void* stored_at(const void* all, int64_t at) const {
    return static_cast<const char*>(all) + at * static_cast<int64_t>(element_size(stored));
  }
  int64_t blocks() const { return divide_up(rows, block); }
  int64_t own() const { return block * (width + stride); }
  int64_t floats() const {
    const int64_t rest = values % isa().tile_columns;
    if (kIsSmall) return own() + (rest == 0 ? 0 : isa().tile_columns * keys);
    return own() + (is_few ? 0 : panelled * width + columns * keys);
  }
  Room room(float* memory) const {
    float* const rest = memory + own();
    return {memory, memory + block * width, rest, kIsSmall ? rest : rest + panelled * width};
  }

  /// Keys and values of batch `n` up to key `end`, in whole panels of keys.
  void pack(int64_t n, int64_t end, Room& room) const {
    if (room.batch != n) room.batch = n, room.packed = 0;
    const int64_t tile = isa().tile_columns, first = room.packed;
    const int64_t last = min(divide_up(end, tile) * tile, keys);
    if (last <= first) return;
    isa().pack_transposed(static_cast<const float*>(key) + (n * keys + first) * width, width,
                          last - first, width, room.keys + first * width);
    const float* const from = static_cast<const float*>(value) + (n * keys + first) * values;
    for (int64_t i = 0; i < columns; i += tile) {
      isa().pack_rows(from + i, values, min(tile, values - i), last - first,
                      room.values + i * keys + first * tile);
    }
    room.packed = last;
  }

  /// Scores of `count` rows with these keys.
  void score(int64_t n, int64_t count, Keys seen, const Room& room) const {
    if (is_few) {
      Gemv d;
      d.x = room.scaled, d.x_stride = width, d.rows = count;
      d.w = stored_at(key, n * keys * width), d.w_stride = width, d.depth = width;
      d.begin = seen.begin, d.end = seen.end;
      d.y = room.scores, d.y_stride = stride;
      const DotsLoop<float> dots = few_rows<float>(stored).dots;
      (dots != nullptr ? dots : isa().gemv)(d);
      return;
    }
    const int64_t tile = isa().tile_columns;
    Gemm g;
    g.a = room.scaled, g.a_stride = width;
    g.b = room.keys, g.b_stride = tile, g.panel_stride = tile * width;
    g.c = room.scores, g.c_stride = stride;
    g.depth = width, g.row_end = count;
    g.column_begin = seen.begin / tile * tile, g.column_end = seen.end;
    g.column_block = column_block(4 * width);
    isa().gemm(g);
  }

  /// The values, weighted.
  void mix(int64_t n, int64_t count, Keys seen, const Room& room, float* y) const {
    const float* const weights = room.scores + seen.begin;
    const void* const stored_from = stored_at(value, (n * keys + seen.begin) * values);
    const float* const from = static_cast<const float*>(stored_from);
    const int64_t depth = seen.end - seen.begin, tile = isa().tile_columns;
    if (kIsSmall) {
      for (int64_t i = 0; i < count; ++i) {
        multiply_alone(weights + i * stride, from, y + i * values, 1, depth, values, room.values);
      }
      return;
    }
    if (is_few) {
      Accumulation<float> d;
      d.a = weights, d.a_stride = stride, d.rows = count, d.depth = depth, d.columns = values;
      d.b = stored_from, d.b_stride = values, d.y = y, d.y_stride = values;
      few_rows<float>(stored).accumulate(d);
      return;
    }
    Gemm g;
    g.a = weights, g.a_stride = stride;
    g.b = columns == 0 ? from : room.values + seen.begin * tile;
    g.b_stride = columns == 0 ? values : tile, g.panel_stride = columns == 0 ? tile : tile * keys;
    g.c = y, g.c_stride = values;
    g.depth = depth, g.row_end = count, g.column_end = values;
    g.column_block = column_block(4 * depth);
    isa().gemm(g);
  }

  void run(int64_t unit, Room& room) const {
    const int64_t n = unit / blocks(), first = unit % blocks() * block;
    const int64_t count = min(block, rows - first), row = n * rows + first;
    float* const y = out + row * values;
    Keys seen{keys, 0};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = mask.offset(row + i);
      if (at != room.mask || mask.causal != 0) {
        room.mask = at, room.seen = mask.seen_by(row + i, keys);
      }
      seen = {min(seen.begin, room.seen.begin), max(seen.end, room.seen.end)};
    }
    if (seen.begin >= seen.end) {
      const float nothing = keys == 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      for (int64_t i = 0; i < count * values; ++i) y[i] = nothing;
      return;
    }
    isa().mul_scalar(query + row * width, scale, room.scaled, static_cast<size_t>(count * width));
    if (!is_few) pack(n, seen.end, room);
    score(n, count, seen, room);
    for (int64_t i = 0; i < count; ++i) {
      float* const scores = room.scores + i * stride + seen.begin;
      mask.apply(row + i, seen, scores);
      isa().softmax_row(scores, scores, static_cast<size_t>(seen.end - seen.begin));
    }
    mix(n, count, seen, room, y);
  }
};

/// The sizes of the rows, and the strides with which the mask is repeated along them.
Error read_mask(Context& context, const std::optional<Tensor>& tensor, IntList shape,
                bool is_causal, const Attention& work, Mask& mask) {
  const Checked rows = Checked(work.batch) * work.rows;
  if (shape.empty()) {
    mask.rank = 2;
    mask.sizes[0] = work.batch, mask.sizes[1] = work.rows;
  } else {
    mask.rank = static_cast<ssize_t>(shape.size()) - 1;
    ETX_CHECK(context, mask.rank >= 1 && shape.size() <= kMaxRank, InvalidArgument,
              "shape must have the sizes of the scores");
    Checked known(1);
    ssize_t unknown = -1;
    for (ssize_t d = 0; d < mask.rank; ++d) {
      mask.sizes[d] = shape[static_cast<size_t>(d)];
      if (mask.sizes[d] == -1 && unknown < 0) {
        unknown = d;
      } else {
        ETX_CHECK(context, mask.sizes[d] >= 0, InvalidArgument, "shape has a negative size");
        known = known * mask.sizes[d];
      }
    }
    const int64_t product = known.value_or(0);
    if (unknown >= 0) mask.sizes[unknown] = product == 0 ? 0 : rows.value_or(0) / product;
    const int64_t last = shape[shape.size() - 1];
    ETX_CHECK(context,
              (unknown < 0 ? known : known * mask.sizes[unknown]).is(rows.value_or(-1)) &&
                  (last == work.keys || (last == -1 && unknown < 0)),
              InvalidArgument, "shape must have a row for each query, and a column for each key");
  }
  mask.causal = is_causal ? mask.sizes[mask.rank - 1] : 0;
  if (!tensor.has_value()) return Error::Ok;
  const ssize_t lead = mask.rank + 1 - tensor->dim();
  ETX_CHECK(context, lead >= 0 && tensor->dim() > 0 && tensor->size(-1) == work.keys,
            InvalidArgument, "the mask must have a column for each key");
  int64_t stride = work.keys;
  for (ssize_t d = tensor->dim() - 2; d >= 0; --d) {
    const int64_t size = tensor->size(d);
    ETX_CHECK(context, size == 1 || size == mask.sizes[d + lead], InvalidArgument,
              "the mask must be broadcastable to the scores");
    mask.strides[d + lead] = size == 1 ? 0 : stride;
    stride *= size;
  }
  const ScalarType type = tensor->scalar_type();
  if (type == ScalarType::Float) return read_operand(context, *tensor, type, mask.added);
  ETX_CHECK(context, type == ScalarType::Bool, InvalidArgument, "the mask must be float32 or bool");
  const void* bytes;
  ETX_TRY(read_operand(context, *tensor, type, bytes));
  mask.seen = static_cast<const uint8_t*>(bytes);
  return Error::Ok;
}

Error attention_out(Context& context, const Tensor& query, const Tensor& key, const Tensor& value,
                    const std::optional<Tensor>& mask, IntList shape, double scale, bool is_causal,
                    Tensor& out) {
  ETX_CHECK(context, query.dim() == 3 && key.dim() == 3 && value.dim() == 3, InvalidArgument,
            "query, key and value must be batches of matrices");
  ETX_CHECK(context,
            query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
                query.size(2) == key.size(2) && key.size(1) == value.size(1),
            InvalidArgument,
            "query (N, M, E), key (N, L, E) and value (N, L, F) must agree in N, L and E");
  for (const Tensor* tensor : {&query, &key, &value, static_cast<const Tensor*>(&out)}) {
    ETX_CHECK(
        context, tensor->scalar_type() == out.scalar_type() && Single::contains(out.scalar_type()),
        NotSupported, "query, key, value and out must be float32, or all float16 or bfloat16");
  }
  Shape sizes;
  sizes.push(query.size(0));
  sizes.push(query.size(1));
  sizes.push(value.size(2));
  ETX_TRY(resize_out(context, out, sizes));
  Attention work{query.size(0), query.size(1), key.size(1), query.size(2), value.size(2)};
  work.scale = static_cast<float>(scale);
  ETX_TRY(read_mask(context, mask, shape, is_causal, work, work.mask));
  ResultOperand result;
  ETX_TRY(read_operand(context, query, ScalarType::Float, work.query));
  work.plan();
  if (work.is_few && !kIsSmall) work.stored = out.scalar_type();
  ETX_TRY(read_operand(context, key, work.stored, work.key));
  ETX_TRY(read_operand(context, value, work.stored, work.value));
  ETX_TRY(result.prepare(context, out, ScalarType::Float));
  work.out = result.data<float>();
  if (out.numel() == 0) return result.finish(context, out);
  const int64_t units = work.batch * work.blocks(), floats = work.floats();
  const Checked products = Checked(work.batch) * work.rows * work.keys * (work.width + work.values);
  const int64_t useful = useful_threads(context, products * read_cost(work.rows));
  const int64_t threads = min(useful, units);
  ETX_ASSIGN(float* const memory, scratch<float>(context, threads * floats,
                                                 "not enough temporary memory for attention"));
  context.parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      Room room = work.room(memory + job * floats);
      // The later rows of a causal mask see more: threads take turns.
      for (int64_t i = job; i < units; i += threads) work.run(i, room);
    }
  });
  return result.finish(context, out);
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("etx::attention.out", attention_out, Single::bits | BoolOnly::bits),
};

}  // namespace

ETX_KERNEL_TABLE(attention_kernels, kRows);

}  // namespace etx::portable
