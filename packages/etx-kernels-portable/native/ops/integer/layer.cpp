// SPDX-License-Identifier: BSD-3-Clause
#include "ops/integer/layer.h"

#include "core/scratch.h"
#include "core/work.h"
#include "isa/widen.h"
#include "ops/integer/line_layer.h"

namespace etx::portable {
namespace {

/// Gathered rows stay in the second nearest cache, with a panel of the weight and the results.
constexpr int64_t kGatheredBytes = 192 * 1024;
/// How much faster than a multiplication of floats one of int8 is, and where few rows share a
/// weight that has to come from memory.
constexpr int64_t kFaster = 4, kFewRowsFaster = 2;

/// The memory of one thread.
struct Workspace {
  uint8_t* rows;
  RowScale* scales;
  int32_t* group_sums;
  float* room;  ///< For widened scales.
};

/// Rows longer than this are kept apart: of lines that are whole powers of two apart a cache holds
/// few.
constexpr int64_t kMostTogether = 1024;

/// Rows lie next to each other as they are multiplied; only what the level adds is missing.
bool are_together(const Layer& layer) {
  const Rows& rows = layer.rows;
  return layer.x == nullptr && rows.window == nullptr && rows.stride == rows.depth &&
         rows.depth % kBlockDepth == 0 && rows.depth <= kMostTogether &&
         integer().step_bytes == kBlockDepth;
}

/// What a gathered row needs beside its bytes.
int64_t extra_bytes(const Layer& layer) {
  return static_cast<int64_t>(sizeof(RowScale)) +
         layer.product.groups * static_cast<int64_t>(sizeof(int32_t));
}

/// What the scales of a block take per group when they are floats.
constexpr int64_t kScaleBytes = kBlockColumns * static_cast<int64_t>(sizeof(float));

/// Blocks whose scales become floats at once, for loops that do not read them as they are: the
/// nearest cache holds them.
int64_t widened_blocks(const Product& p) {
  if (p.narrow_scale == nullptr) return 0;
  const int64_t panel = integer().panel_blocks;
  return max<int64_t>(8192 / (p.groups * kScaleBytes * panel), 1) * panel;
}

struct Schedule {
  int64_t threads = 1;
  bool by_rows = true, together = false;
  int64_t row_stride = 0;
  int64_t block = 0;  ///< Rows gathered at a time.
  int64_t workspace = 0;

  Schedule(const Context& context, const Layer& layer) {
    const Integer& level = integer();
    const Product& p = layer.product;
    const int64_t faster = layer.num_rows < level.tile_rows ? kFewRowsFaster : kFaster;
    const Checked work =
        Checked(layer.num_rows) * p.columns * (p.steps * kBlockDepth / faster) * layer.groups;
    threads = useful_threads(context, work);
    const int64_t tiles = divide_up(layer.num_rows, level.tile_rows);
    by_rows = tiles >= 2 * threads || divide_up(p.end, level.panel_blocks) < threads;
    together = are_together(layer);
    row_stride = together ? layer.rows.depth : gathered_stride(level, p.steps);
    const int64_t each = row_stride + extra_bytes(layer);
    const int64_t most = max<int64_t>(kGatheredBytes / each / level.tile_rows, 1);
    block = min(most, tiles) * level.tile_rows;
    const int64_t room = widened_blocks(p) * (p.groups * kScaleBytes);
    workspace = divide_up(block * each + kGatheredSlack + room, 64) * 64;
  }
};

void gather(const Layer& layer, int64_t group, int64_t begin, int64_t end, const Schedule& s,
            const Workspace& memory) {
  if (layer.x != nullptr) {
    integer().gather_floats(layer.x + begin * layer.rows.stride, layer.rows.stride,
                            layer.rows.depth, end - begin, memory.rows, s.row_stride, memory.scales,
                            layer.sum_groups != nullptr);
    return;
  }
  if (s.together) {
    return integer().flip(layer.rows.x + begin * s.row_stride, memory.rows,
                          (end - begin) * s.row_stride);
  }
  Rows rows = layer.rows;
  if (rows.window != nullptr) rows.x += group * rows.window->channels;
  integer().gather(rows, begin, end, memory.rows, s.row_stride);
}

template <typename T>
void advance(const T*& operand, int64_t by) {
  if (operand != nullptr) operand += by;
}

/// Multiplies with the whole blocks of `p`, whose scales become floats in `room` first.
void multiply_widened(const Layer& layer, Product p, float* room) {
  const int64_t each = p.groups * kBlockColumns, step = widened_blocks(p);
  const int64_t end = p.end;
  for (int64_t from = 0, index = p.begin; index < end; from = index, index += step) {
    begin_at(index - from, layer.blocks, p);
    p.end = min(end - index, step);
    p.sums += (index - from) * each;
    p.narrow_scale += (index - from) * each;
    if (p.bias != nullptr) p.bias += (index - from) * kBlockColumns;
    from_bfloat16(p.narrow_scale, room, p.end * each);
    p.scale = room;
    layer.multiply(p);
  }
}

void run_part(const Layer& layer, const Schedule& s, int64_t i, const Workspace& memory) {
  const Integer& level = integer();
  const Part rows(layer.num_rows, level.tile_rows, s.by_rows ? i : 0, s.by_rows ? s.threads : 1);
  const Part columns(layer.product.end, level.panel_blocks, s.by_rows ? 0 : i,
                     s.by_rows ? 1 : s.threads);
  for (int64_t k = 0; layer.row_scale != nullptr && k < s.block; ++k) {
    memory.scales[k] = *layer.row_scale;
  }
  for (int64_t begin = rows.begin; begin < rows.end; begin += s.block) {
    const int64_t end = min(rows.end, begin + s.block);
    for (int64_t g = 0; g < layer.groups; ++g) {
      gather(layer, g, begin, end, s, memory);
      Product p = layer.product;
      p.rows = memory.rows;
      p.row_stride = s.row_stride;
      p.row_scales = memory.scales;
      p.num_rows = end - begin;
      if (layer.sum_groups != nullptr) layer.sum_groups(p, memory.group_sums);
      p.group_sums = memory.group_sums;
      p.begin = columns.begin;
      p.end = columns.end;
      p.weight += g * layer.weight_step;
      advance(p.start, g * layer.operand_step);
      advance(p.scale, g * layer.operand_step);
      advance(p.sums, g * layer.operand_step);
      advance(p.bias, g * layer.operand_step);
      if (p.out != nullptr) p.out += begin * p.out_stride + g * p.columns;
      if (p.y != nullptr) p.y += begin * p.y_stride + g * p.columns;
      if (p.narrow_scale != nullptr && p.num_rows > integer().narrow_rows) {
        p.end = min(p.end, layer.blocks.partial);
        multiply_widened(layer, p, memory.room);
        p.begin = p.end;
        p.end = columns.end;
      }
      multiply_columns(p, layer.blocks, layer.multiply);
    }
  }
}

}  // namespace

Error run_layer(Context& context, const Layer& layer) {
  if (layer.num_rows == 0 || layer.product.columns == 0) return Error::Ok;
  if (integer().reads_taps != 0 && reads_lines(layer)) return run_lines(context, layer);
  const Schedule s(context, layer);
  ETX_ASSIGN(uint8_t* const memory, scratch<uint8_t>(context, s.threads * s.workspace,
                                                     "no temporary memory to gather rows in"));
  context.parallel_for(0, s.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint8_t* const rows = memory + i * s.workspace;
      uint8_t* const behind = rows + s.block * s.row_stride + kGatheredSlack;
      RowScale* const scales = reinterpret_cast<RowScale*>(behind);
      int32_t* const sums = reinterpret_cast<int32_t*>(scales + s.block);
      float* const room = reinterpret_cast<float*>(sums + s.block * layer.product.groups);
      run_part(layer, s, i, {rows, scales, sums, room});
    }
  });
  return Error::Ok;
}

}  // namespace etx::portable
