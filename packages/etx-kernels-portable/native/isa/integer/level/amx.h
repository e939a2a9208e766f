// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_AMX_H_
#define ETX_PORTABLE_INTEGER_AMX_H_

/// Products of gathered rows and packed weights by tiles of 16 rows and 64 bytes: 16 blocks of the
/// depth are a tile as they lie. Of the 8 tiles 0 to 3 are sums, 4 and 5 the operands, 6 and 7
/// operands of what is left of the depth.

#include "isa/integer/level/product.h"
#include "isa/tile_shapes.h"

namespace etx::portable {
namespace {

constexpr int kSquare = 16;  ///< Rows and columns of a tile of sums.

/// Rows on their way through the depth, which begins again at each tap.
struct Walk {
  const uint8_t* rows;
  int64_t row_stride;
  const int8_t* weight;
  int64_t block_stride;
  const int64_t* taps;
  int64_t num_taps, squares, rest;
  const int8_t* next;  ///< Lines of 64 bytes that will be read soon, `fetched` for each square.
  int64_t fetched;
};

/// Adds the products of M by N tiles at one place of the depth.
template <int M, int N, int in_a, int in_b>
ETX_INLINE void add_square(const Walk& t, const uint8_t* a, const int8_t* w) {
  load_tile<in_a>(a, t.row_stride);
  load_tile<in_b>(w, kBlockBytes);
  add_bytes<0, in_a, in_b>();
  if constexpr (N == 2) {
    load_tile<in_b>(w + t.block_stride, kBlockBytes);
    add_bytes<1, in_a, in_b>();
  }
  if constexpr (M == 2) {
    load_tile<in_a>(a + kSquare * t.row_stride, t.row_stride);
    if constexpr (N == 2) {
      add_bytes<3, in_a, in_b>();
      load_tile<in_b>(w, kBlockBytes);
    }
    add_bytes<2, in_a, in_b>();
  }
}

template <int M, int N>
ETX_NOINLINE void add_tiles(const Walk& t, const int32_t* start, int32_t* sums) {
  constexpr int64_t kStride = 2 * kBlockBytes, kDown = 2 * kSquare * kSquare;
  if (start != nullptr) {
    load_tile<0>(start, 0);
    if constexpr (M == 2) load_tile<2>(start, 0);
    if constexpr (N == 2) load_tile<1>(start + kSquare, 0);
    if constexpr (M * N == 4) load_tile<3>(start + kSquare, 0);
  } else {
    zero_tiles();
  }
  const int8_t* w = t.weight;
  const int8_t* next = t.next;
  for (int64_t tap = 0; tap < t.num_taps; ++tap) {
    const uint8_t* a = t.rows + t.taps[tap];
    for (int64_t k = 0; k < t.squares; ++k) {
      add_square<M, N, 4, 5>(t, a, w);
      a += kSquare * kBlockDepth, w += kSquare * kBlockBytes;
      for (int64_t i = 0; i < t.fetched; ++i, next += kBlockBytes) prefetch_bytes(next);
    }
    if (t.rest > 0) {
      add_square<M, N, 6, 7>(t, a, w);
      w += t.rest * kBlockBytes;
    }
  }
  store_tile<0>(sums, kStride);
  if constexpr (N == 2) store_tile<1>(sums + kSquare, kStride);
  if constexpr (M == 2) store_tile<2>(sums + kDown, kStride);
  if constexpr (M * N == 4) store_tile<3>(sums + kDown + kSquare, kStride);
}

/// Sums of 32 rows and two blocks of columns.
struct alignas(64) TileSums {
  int32_t at[2 * kSquare][2 * kSquare];
  VecI vector(int64_t row, int v) const { return load_ints(at[row] + v * kLanes); }
};

/// Makes of the sums of a tile, or of two by two, what they become.
typedef void (*FinishTiles)(const Product& p, const TileSums& sums, int64_t rows, const Place& at);

void finish_bytes(const Product& p, const TileSums& sums, int64_t rows, const Place& at) {
  const Requantize to_bytes(p.bounds);
  const VecF scale[2] = {load(p.scale + at.column), load(p.scale + at.column + kLanes)};
  const VecF factors[4] = {scale[0], scale[1], scale[0], scale[1]};
  const int64_t n = at.columns < 2 * kLanes ? at.columns : 2 * kLanes;
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << n) - 1);
  int64_t x = at.row % p.pitch;
  int8_t* out = p.out + (at.row / p.pitch * p.line + (x < p.line ? x : p.line)) * p.out_stride;
  out += at.column;
  const auto store = [&](bool is_row, __m256i bytes) ETX_INLINE_LAMBDA {
    if (is_row && x < p.line) {
      _mm256_mask_storeu_epi8(out, mask, bytes);
      out += p.out_stride;
    }
    x = x + 1 == p.pitch ? 0 : x + 1;
  };
  for (int64_t i = 0; i < rows; i += 2) {
    const VecI four[4] = {sums.vector(i, 0), sums.vector(i, 1), sums.vector(i + 1, 0),
                          sums.vector(i + 1, 1)};
    const __m512i y = to_bytes.join_rows(four, factors);
    store(true, _mm512_castsi512_si256(y));
    store(i + 1 < rows, _mm512_extracti64x4_epi64(y, 1));
  }
}

void finish_floats_of_tiles(const Product& p, const TileSums& sums, int64_t rows, const Place& at) {
  const VecF least = splat(p.least), most = splat(p.most);
  for (int v = 0; v < 2 && v * kLanes < at.columns; ++v) {
    const int64_t column = at.column + v * kLanes;
    const VecI weights = load_ints(p.sums + column);
    const VecF scale = load(p.scale + column);
    const VecF bias = p.bias == nullptr ? splat(0.0f) : load(p.bias + column);
    float* y = p.y + at.row * p.y_stride + column;
    for (int64_t i = 0; i < rows; ++i, y += p.y_stride) {
      const RowScale row = p.row_scales[at.row + i];
      const VecF total = to_floats(without_offset(sums.vector(i, v), weights, row.offset)) * scale;
      const VecF value = total * row.scale + bias;
      store_up_to(y, smallest(largest(value, least), most), at.columns - v * kLanes);
    }
  }
}

/// Of more, a panel is read often enough for its way from memory not to matter.
constexpr int64_t kMostTiles = 16;

/// A panel of columns after the other, each with all rows. The last rows are multiplied again where
/// fewer than a tile's are left. The sums of a tile are finished while the next one is multiplied.
ETX_NOINLINE void tiled_product(const Product& p, FinishTiles finish) {
  static constexpr int64_t kNoTaps[1] = {0};
  const int64_t height = p.num_rows < kSquare ? p.num_rows : kSquare;
  const int64_t steps = p.steps / p.num_taps, block_stride = p.steps * kBlockBytes;
  TileSums sums[2];
  struct {
    int64_t rows = 0;
    Place at;
  } last;
  Walk t = {};
  t.row_stride = p.row_stride;
  t.block_stride = block_stride;
  t.taps = p.taps == nullptr ? kNoTaps : p.taps;
  t.num_taps = p.num_taps;
  t.squares = steps / kSquare;
  t.rest = steps % kSquare;
  set_tiles(height, t.rest);
  const int64_t tiles = (p.num_rows + 2 * kSquare - 1) / (2 * kSquare);
  t.fetched = tiles > kMostTiles ? 0 : 2 * kSquare / tiles;
  int turn = 0;
  for (int64_t block = p.begin; block < p.end; block += 2) {
    const bool two = p.end - block > 1;
    t.weight = p.weight + block * block_stride;
    Place at = {0, block * kBlockColumns, p.columns - block * kBlockColumns};
    if (!two && at.columns > kBlockColumns) at.columns = kBlockColumns;
    t.next = t.weight + 2 * block_stride;
    if (p.end - block <= 2) t.fetched = 0;
    const int32_t* const start = p.start == nullptr ? nullptr : p.start + at.column;
    for (int64_t row = 0; row < p.num_rows;) {
      const bool both = p.num_rows - row > kSquare && p.num_rows >= 2 * kSquare;
      const int64_t rows = both ? 2 * kSquare : height;
      at.row = row + rows <= p.num_rows ? row : p.num_rows - rows;
      t.rows = p.rows + at.row * p.row_stride;
      int32_t* const to = sums[turn].at[0];
      if (both) {
        two ? add_tiles<2, 2>(t, start, to) : add_tiles<2, 1>(t, start, to);
      } else {
        two ? add_tiles<1, 2>(t, start, to) : add_tiles<1, 1>(t, start, to);
      }
      t.next += t.fetched * t.squares * t.num_taps * kBlockBytes;
      turn ^= 1;
      if (last.rows > 0) finish(p, sums[turn], last.rows, last.at);
      last = {rows, at};
      row += rows;
    }
  }
  finish(p, sums[turn ^ 1], last.rows, last.at);
  release_tiles();
}

/// Of fewer rows, or a shallow depth, the sums cost as much as the products.
inline bool pays(const Product& p) { return p.num_rows >= 2 && p.steps >= 8; }

void product_of_tiles(const Product& p) {
  p.taps != nullptr || pays(p) ? tiled_product(p, finish_bytes) : product(p);
}
void float_product_of_tiles(const Product& p) {
  pays(p) ? tiled_product(p, finish_floats_of_tiles) : float_product(p);
}

/// The level of vectors with products of tiles.
constexpr Integer with_tiles(Integer level) {
  level.name = "v4_amx";
  level.tile_rows = kSquare;
  level.reads_taps = 1;
  level.product = product_of_tiles;
  level.float_product = float_product_of_tiles;
  return level;
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_AMX_H_
