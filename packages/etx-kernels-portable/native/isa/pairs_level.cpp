// SPDX-License-Identifier: BSD-3-Clause
/// Compiled for AVX-512 with dot products of bfloat16; tiles are assembled by hand.

#define ETX_GEMM_OF_PAIRS

#include "isa/pairs.h"

#include "isa/level/gemm.h"
#include "isa/level/tiles.h"

namespace etx::portable {
namespace {

void pack_pairs(const uint16_t* b, int64_t stride, int64_t columns, int64_t pairs, float* panel) {
  const __mmask32 mask = columns == 32 ? ~0u : (1u << columns) - 1u;
  const __m512i even = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                        8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i later = _mm512_add_epi16(even, _mm512_set1_epi16(16));
  for (int64_t k = 0; k < pairs; ++k, b += 2 * stride, panel += kTileColumns) {
    const __m512i x = _mm512_maskz_loadu_epi16(mask, b);
    const __m512i y = _mm512_maskz_loadu_epi16(mask, b + stride);
    _mm512_storeu_si512(panel, _mm512_permutex2var_epi16(x, even, y));
    _mm512_storeu_si512(panel + kLanes, _mm512_permutex2var_epi16(x, later, y));
  }
}

void interleave(const float* x, const float* next, float* y, int64_t n) {
  const __m512i merge = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (int64_t i = 0; i < n; i += kLanes) {
    const __mmask16 mask = n - i < kLanes ? first(static_cast<size_t>(n - i)) : __mmask16{0xffff};
    const __m512 a = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 b = _mm512_maskz_loadu_ps(mask, next + i);
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    _mm512_mask_storeu_epi32(y + i, mask, _mm512_permutexvar_epi16(merge, both));
  }
}

}  // namespace

extern const Pairs pairs_v4;
const Pairs pairs_v4 = {gemm, pack_pairs, interleave, false};

extern const Pairs pairs_amx;
const Pairs pairs_amx = {gemm_of_tiles, pack_pairs, interleave, true};

}  // namespace etx::portable
