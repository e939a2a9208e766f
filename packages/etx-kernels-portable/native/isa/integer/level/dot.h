// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_DOT_H_
#define ETX_PORTABLE_INTEGER_DOT_H_

/// Dot products of four bytes in each lane: what differs between instruction sets. `Left` is the
/// same four numbers of a gathered row in each lane, `Right` those of a column in each.

#include "isa/integer/integer.h"
#include "isa/simd.h"

#if defined(__aarch64__) && defined(ETX_SIMD_VECTORS)
#include <arm_neon.h>
#elif defined(__SSE2__) && defined(ETX_SIMD_VECTORS)
#include <immintrin.h>
#endif

namespace etx::portable {
namespace {

constexpr int kParts = static_cast<int>(kBlockColumns) / kLanes;  ///< Vectors of a block.

inline VecI load_ints(const int32_t* p) {
  VecI v;
  memcpy(&v, p, sizeof(v));
  return v;
}
inline VecI load_bytes(const int8_t* p) {
  VecI v;
  memcpy(&v, p, sizeof(v));
  return v;
}
/// What is behind whole vectors is not worth copies of its loop.
inline void stay_scalar() {
#if defined(__GNUC__)
  __asm__ volatile("");
#endif
}
inline int32_t load_int(const uint8_t* p) {
  int32_t s;
  memcpy(&s, p, sizeof(s));
  return s;
}

inline int32_t repeat(int32_t number, uint32_t pattern) {
  return static_cast<int32_t>(static_cast<uint32_t>(number) * pattern);
}

/// How far byte `i` of a lane, counted in memory, lies below the highest.
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ETX_BYTE_SHIFT(i) (8 * (i))
#else
#define ETX_BYTE_SHIFT(i) (24 - 8 * (i))
#endif
template <int i>
inline VecI byte_of(VecI bytes) {
  return to_signed(to_unsigned(bytes) << ETX_BYTE_SHIFT(i)) >> 24;
}

#if defined(ETX_SIMD_VECTORS) && (defined(__AVX512VNNI__) || defined(__AVXVNNI__))
/// Products of unsigned and signed bytes: gathered numbers are 128 larger.
constexpr int kStepBytes = 4, kOffset = 128;
typedef uint8_t Gathered;

struct Left {
  VecI v;
  explicit Left(const uint8_t* p) : v(splat(load_int(p))) {}
  explicit Left(int32_t number) : v(splat(repeat(number & 0xFF, 0x01010101u))) {}
};
struct Right {
  VecI v;
  explicit Right(VecI bytes) : v(bytes) {}
};
inline VecI dot(VecI sum, Left a, Right b) {
#if ETX_SIMD_BYTES == 64
  return (VecI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a.v, (__m512i)b.v);
#else
  return (VecI)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a.v, (__m256i)b.v);
#endif
}

#elif defined(ETX_SIMD_VECTORS) && defined(__SSE2__)
/// Pairs of int16: each four gathered numbers are two pairs, the first with the third.
constexpr int kStepBytes = 8, kOffset = 0;
typedef int16_t Gathered;

struct Left {
  VecI even, odd;
  explicit Left(const uint8_t* p) : even(splat(load_int(p))), odd(splat(load_int(p + 4))) {}
  explicit Left(int32_t number) : even(splat(repeat(number & 0xFFFF, 0x00010001u))), odd(even) {}
};
struct Right {
  VecI even, odd;
  // Moved by a byte as a whole, which another unit than that of shifts does.
#if ETX_SIMD_BYTES == 32
  explicit Right(VecI bytes)
      : even((VecI)_mm256_srai_epi16(_mm256_slli_si256((__m256i)bytes, 1), 8)),
        odd((VecI)_mm256_srai_epi16((__m256i)bytes, 8)) {}
#else
  explicit Right(VecI bytes)
      : even((VecI)_mm_srai_epi16(_mm_slli_si128((__m128i)bytes, 1), 8)),
        odd((VecI)_mm_srai_epi16((__m128i)bytes, 8)) {}
#endif
};
inline VecI dot(VecI sum, Left a, Right b) {
#if ETX_SIMD_BYTES == 32
  return sum + (VecI)_mm256_madd_epi16((__m256i)a.even, (__m256i)b.even) +
         (VecI)_mm256_madd_epi16((__m256i)a.odd, (__m256i)b.odd);
#else
  return sum + (VecI)_mm_madd_epi16((__m128i)a.even, (__m128i)b.even) +
         (VecI)_mm_madd_epi16((__m128i)a.odd, (__m128i)b.odd);
#endif
}

#if ETX_SIMD_BYTES == 32
/// A row that is gathered alone has its numbers in their order, and 16 bytes of columns become
/// words as they are loaded: sums of the first two products, and of the last two.
#define ETX_INTEGER_LONE_ROWS 1
inline VecI dot_in_order(VecI sum, VecI row, const int8_t* columns) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)columns));
  return sum + (VecI)_mm256_madd_epi16(words, (__m256i)row);
}
/// The sums of eight columns from those of four and four.
inline VecI join_in_order(VecI first, VecI second) {
  const __m256i sums = _mm256_hadd_epi32((__m256i)first, (__m256i)second);
  return (VecI)_mm256_permute4x64_epi64(sums, 0xD8);
}
#endif

#elif defined(ETX_SIMD_VECTORS) && defined(__ARM_FEATURE_DOTPROD)
constexpr int kStepBytes = 4, kOffset = 0;
typedef int8_t Gathered;

struct Left {
  VecI v;
  explicit Left(const uint8_t* p) : v(splat(load_int(p))) {}
  explicit Left(int32_t number) : v(splat(repeat(number & 0xFF, 0x01010101u))) {}
};
struct Right {
  VecI v;
  explicit Right(VecI bytes) : v(bytes) {}
};
inline VecI dot(VecI sum, Left a, Right b) {
  return (VecI)vdotq_s32((int32x4_t)sum, (int8x16_t)a.v, (int8x16_t)b.v);
}

#else
/// Multiplications of 32 bits.
constexpr int kStepBytes = 4, kOffset = 0;
typedef int8_t Gathered;

struct Left {
  int32_t v[4];
  explicit Left(int32_t number) : v{number, number, number, number} {}
  explicit Left(const uint8_t* p) {
    for (int i = 0; i < 4; ++i) v[i] = static_cast<int8_t>(p[i]);
  }
};
struct Right {
  VecI v[4];
  explicit Right(VecI bytes)
      : v{byte_of<0>(bytes), byte_of<1>(bytes), byte_of<2>(bytes), byte_of<3>(bytes)} {}
};
inline VecI dot(VecI sum, const Left& a, const Right& b) {
  return sum + b.v[0] * a.v[0] + b.v[1] * a.v[1] + b.v[2] * a.v[2] + b.v[3] * a.v[3];
}
#endif

#if ETX_SIMD_BYTES == 64 || ETX_SIMD_BYTES == 32
/// Products of nibbles, which are unsigned, and signed bytes: gathered rows of theirs stay bytes.
#define ETX_INTEGER_NIBBLES 1
constexpr int kNibbleStepBytes = 4, kNibbleOffset = 0, kNarrowRows = 1;
typedef int8_t GatheredForInt4;
#else
constexpr int kNibbleStepBytes = kStepBytes, kNibbleOffset = kOffset, kNarrowRows = 0;
typedef Gathered GatheredForInt4;
#endif
#if defined(ETX_INTEGER_NIBBLES) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
/// They are added as words.
#define ETX_INTEGER_NIBBLE_WORDS 1
#endif

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_DOT_H_
