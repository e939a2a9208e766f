// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_TILE_INSTRUCTIONS_H_
#define ETX_PORTABLE_TILE_INSTRUCTIONS_H_

/// The instructions of tiles (AMX; Intel, Architecture Instruction Set Extensions, chapter 3),
/// written in assembly, which compilers need no flags for; strides are in bytes. With
/// ETX_TILE_MODEL they are loops, for processors without tiles and for sanitizers, which see
/// nothing of what tiles read.

#include <cstdint>
#if defined(ETX_TILE_MODEL)
#include <cstdlib>
#include <cstring>
#endif

#include "isa/simd.h"

namespace etx::portable {
namespace {

/// What ldtilecfg reads.
struct TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

#if defined(ETX_TILE_MODEL)

struct TileModel {
  TileShapes shapes;
  alignas(64) uint8_t data[8][16][64];

  void expect(bool is_valid) const {
    if (shapes.palette != 1 || !is_valid) std::abort();
  }
};
thread_local TileModel tile_model = {};

inline void configure_tiles(const TileShapes& shapes) {
  tile_model = {};
  tile_model.shapes = shapes;
}
inline void release_tiles() { tile_model.shapes.palette = 0; }

template <int tile>
void load_tile(const void* from, int64_t stride) {
  const TileShapes& shapes = tile_model.shapes;
  tile_model.expect(shapes.rows[tile] > 0);
  std::memset(tile_model.data[tile], 0, sizeof(tile_model.data[tile]));
  for (int64_t i = 0; i < shapes.rows[tile]; ++i) {
    std::memcpy(tile_model.data[tile][i], static_cast<const uint8_t*>(from) + i * stride,
                shapes.bytes[tile]);
  }
}
template <int tile>
void store_tile(void* to, int64_t stride) {
  const TileShapes& shapes = tile_model.shapes;
  tile_model.expect(shapes.rows[tile] > 0);
  for (int64_t i = 0; i < shapes.rows[tile]; ++i) {
    std::memcpy(static_cast<uint8_t*>(to) + i * stride, tile_model.data[tile][i],
                shapes.bytes[tile]);
  }
}
inline void zero_tiles() { std::memset(tile_model.data, 0, 4 * sizeof(tile_model.data[0])); }

/// sums[i][j] = add(sums[i][j], four bytes of a's row i, four of b's column j) along the depth.
template <typename Sum, int sums, int a, int b, typename Add>
void add_products(Add add) {
  const TileShapes& shapes = tile_model.shapes;
  tile_model.expect(shapes.rows[sums] == shapes.rows[a] && shapes.bytes[sums] == shapes.bytes[b] &&
                    shapes.bytes[a] == 4 * shapes.rows[b]);
  for (int i = 0; i < shapes.rows[sums]; ++i) {
    for (int j = 0; j < shapes.bytes[sums] / 4; ++j) {
      Sum sum;
      std::memcpy(&sum, tile_model.data[sums][i] + 4 * j, sizeof(sum));
      for (int k = 0; k < shapes.rows[b]; ++k) {
        sum = add(sum, tile_model.data[a][i] + 4 * k, tile_model.data[b][k] + 4 * j);
      }
      std::memcpy(tile_model.data[sums][i] + 4 * j, &sum, sizeof(sum));
    }
  }
}
template <int sums, int a, int b>
void add_bytes() {
  add_products<int32_t, sums, a, b>([](int32_t sum, const uint8_t* x, const uint8_t* w) {
    for (int i = 0; i < 4; ++i) sum += x[i] * static_cast<int8_t>(w[i]);
    return sum;
  });
}
template <int sums, int a, int b>
void add_pairs() {
  add_products<float, sums, a, b>([](float sum, const uint8_t* x, const uint8_t* w) {
    for (int i = 0; i < 4; i += 2) {
      float factors[2] = {};
      std::memcpy(reinterpret_cast<uint8_t*>(&factors[0]) + 2, x + i, 2);
      std::memcpy(reinterpret_cast<uint8_t*>(&factors[1]) + 2, w + i, 2);
      sum += factors[0] * factors[1];
    }
    return sum;
  });
}

#else

// The compiler's functions for these do not say that they touch memory.
inline void configure_tiles(const TileShapes& shapes) {
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}
inline void release_tiles() { __asm__ volatile("tilerelease" ::: "memory"); }

template <int tile>
ETX_INLINE void load_tile(const void* from, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
ETX_INLINE void store_tile(void* to, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}
/// Tiles 0 to 3.
ETX_INLINE void zero_tiles() {
  __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::
                       : "memory");
}
/// Adds products of bytes without sign and with one.
template <int sums, int a, int b>
ETX_INLINE void add_bytes() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b) : "memory");
}
/// Adds products of bfloat16.
template <int sums, int a, int b>
ETX_INLINE void add_pairs() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b) : "memory");
}

#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_TILE_INSTRUCTIONS_H_
