// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_LEVEL_ELEMENTS_H_
#define ETX_PORTABLE_LEVEL_ELEMENTS_H_

/// Vectors of any numbers, and how they are read from elements of fewer bits.

#include <type_traits>

#include "isa/isa.h"
#include "isa/simd.h"

namespace etx::portable {
namespace {

#if defined(ETX_SIMD_VECTORS)
template <typename T, size_t bytes = ETX_SIMD_BYTES>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
inline Vec<T> load_vec(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <typename T>
inline void store_vec(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = v;
}
#else
template <typename T>
using Vec = T;
template <typename T>
inline Vec<T> load_vec(const T* p) {
  return *p;
}
template <typename T>
inline void store_vec(T* p, Vec<T> v) {
  *p = v;
}
#endif
template <typename T>
constexpr int kVec = static_cast<int>(sizeof(Vec<T>) / sizeof(T));

template <typename T>
inline Vec<T> splat_vec(T s) {
  return static_cast<Vec<T>>(s - Vec<T>{});
}
template <typename T>
inline Vec<T> add_vec(Vec<T> a, Vec<T> b) {
  return static_cast<Vec<T>>(a + b);
}
template <typename T>
inline Vec<T> add_product(Vec<T> sum, Vec<T> a, Vec<T> b) {
  if constexpr (std::is_same_v<Vec<T>, T>) {
    return static_cast<T>(sum + times<T>(a, b));
  } else {
    return sum + a * b;
  }
}

/// Elements that are what is computed with.
template <typename T>
struct Same {
  using type = T;
  using element = T;
  static Vec<T> load(const T* p) { return load_vec(p); }
};

/// As many 16-bit numbers as there are floats in a vector.
inline VecU load_half_words(const uint16_t* p) {
#if ETX_SIMD_BYTES == 64
  return (VecU)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif ETX_SIMD_BYTES == 32
  return (VecU)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(ETX_SIMD_VECTORS)
  typedef uint16_t Words __attribute__((vector_size(8)));
  Words words;
  memcpy(&words, p, sizeof(words));
  return __builtin_convertvector(words, VecU);
#else
  return *p;
#endif
}

/// Signed bytes in 16 bits.
struct OfByte {
  using type = uint16_t;
  using element = int8_t;
  static Vec<uint16_t> load(const int8_t* p) {
#if ETX_SIMD_BYTES == 64
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return (Vec<uint16_t>)_mm512_cvtepi8_epi16(bytes);
#elif ETX_SIMD_BYTES == 32
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return (Vec<uint16_t>)_mm256_cvtepi8_epi16(bytes);
#elif defined(ETX_SIMD_VECTORS)
    typedef int8_t Bytes __attribute__((vector_size(8)));
    Bytes bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return (Vec<uint16_t>)__builtin_convertvector(bytes, Vec<int16_t>);
#else
    return static_cast<uint16_t>(*p);
#endif
  }
};

struct OfBfloat16 {
  using type = float;
  using element = uint16_t;
  static VecF load(const uint16_t* p) { return from_bits(load_half_words(p) << 16); }
};

struct OfHalf {
  using type = float;
  using element = uint16_t;
  static VecF load(const uint16_t* p) {
#if ETX_SIMD_BYTES == 64
    return (VecF)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif ETX_SIMD_BYTES == 32 && defined(__F16C__)
    return (VecF)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
    const VecU h = load_half_words(p), rest = (h & 0x7fffu) << 13;
    const VecU infinite = rest >= 0x0f800000u ? splat(uint32_t{0x7f800000}) : splat(uint32_t{0});
    const VecU scaled = bits(from_bits(rest) * 5.192296858534828e33f);
    return from_bits(scaled | infinite | (h & 0x8000u) << 16);
#endif
  }
};

/// The first `n` elements, then zeros.
template <typename E>
ETX_NOINLINE Vec<typename E::type> load_first(const typename E::element* p, size_t n) {
  typename E::element t[kVec<typename E::type>] = {};
  memcpy(t, p, n * sizeof(*t));
  return E::load(t);
}
template <>
ETX_INLINE VecF load_first<Same<float>>(const float* p, size_t n) {
  return load_part(p, n);
}

template <typename T>
inline T add_all(Vec<T> v) {
  if constexpr (kVec<T> == 1) {
    T one;
    memcpy(&one, &v, sizeof(one));
    return one;
  } else {
    T lanes[kVec<T>], total = 0;
    memcpy(lanes, &v, sizeof(lanes));
    for (int i = 0; i < kVec<T>; ++i) total = static_cast<T>(total + lanes[i]);
    return total;
  }
}
template <>
inline float add_all<float>(VecF v) {
  return add_lanes(v);
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_LEVEL_ELEMENTS_H_
