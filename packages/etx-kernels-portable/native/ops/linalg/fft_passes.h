// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_FFT_PASSES_H_
#define ETX_PORTABLE_FFT_PASSES_H_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "isa/isa.h"

namespace etx::portable {
namespace {

/// Of T, or of vectors of them.
template <typename T>
struct Complex {
  T re, im;
  template <typename S>
  Complex operator*(Complex<S> o) const {
    return {re * o.re - im * o.im, re * o.im + im * o.re};
  }
  Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  template <typename S>
  Complex operator*(S s) const {
    return {re * s, im * s};
  }
  /// The number times -i.
  Complex turned() const { return {im, -re}; }
};

typedef float FloatVector __attribute__((vector_size(16)));
typedef double DoubleVector __attribute__((vector_size(16)));

/// Rows of numbers: their real and their imaginary parts.
template <typename T>
struct Planes {
  T *re, *im;
};

template <typename T, typename V>
inline void butterfly(Complex<V> (&z)[2]) {
  const Complex<V> a = z[0], b = z[1];
  z[0] = a + b;
  z[1] = a - b;
}

template <typename T, typename V>
inline void butterfly(Complex<V> (&z)[3]) {
  const Complex<V> sum = z[1] + z[2], a = z[0] - sum * T(0.5);
  const Complex<V> b = ((z[1] - z[2]) * T(0.866025403784438647)).turned();
  z[0] = z[0] + sum;
  z[1] = a + b;
  z[2] = a - b;
}

template <typename T, typename V>
inline void butterfly(Complex<V> (&z)[4]) {
  const Complex<V> a = z[0] + z[2], b = z[0] - z[2], c = z[1] + z[3], d = (z[1] - z[3]).turned();
  z[0] = a + c;
  z[1] = b + d;
  z[2] = a - c;
  z[3] = b - d;
}

template <typename T, typename V>
inline void butterfly(Complex<V> (&z)[5]) {
  const T c1 = T(0.309016994374947424), c2 = T(-0.809016994374947424);
  const T s1 = T(0.951056516295153572), s2 = T(0.587785252292473129);
  const Complex<V> p = z[1] + z[4], q = z[2] + z[3], u = z[1] - z[4], v = z[2] - z[3];
  const Complex<V> a = z[0] + p * c1 + q * c2, b = z[0] + p * c2 + q * c1;
  const Complex<V> c = (u * s1 + v * s2).turned(), d = (u * s2 - v * s1).turned();
  z[0] = z[0] + p + q;
  z[1] = a + c;
  z[2] = b + d;
  z[3] = b - d;
  z[4] = a - c;
}

/// Forward transforms of one length, many side by side: Stockham's passes, one per factor, between
/// two pairs of planes in turns.
template <typename T>
struct Passes {
  /// In a vector of 16 bytes.
  static constexpr int64_t kLanes = 16 / sizeof(T);

  const Complex<T>* roots;  ///< Of unity: exp(-2 pi i k / (n * step)).
  Planes<T> x, y;           ///< From x to y; `kLanes - 1` elements more may follow.

  /// Transforms the rows of `lanes` numbers of x; the result is in x again.
  void run(int64_t n, int64_t step, int64_t lanes) {
    while (n > 1) {
      const int64_t p = factor_of(n);
      n /= p;
      if constexpr (kIsSmall) {
        pass_of_any(p, n, step, lanes);
      } else {
        if (p == 2) pass<2>(n, step, lanes);
        if (p == 3) pass<3>(n, step, lanes);
        if (p == 4) pass<4>(n, step, lanes);
        if (p == 5) pass<5>(n, step, lanes);
        if (p > 5) pass_of_prime(p, n, step, lanes);
      }
      std::swap(x, y);
      step *= p;
      lanes *= p;
    }
  }

 private:
  static int64_t factor_of(int64_t n) {
    if (!kIsSmall && n % 4 == 0) return 4;
    for (int64_t p = 2; p * p <= n; ++p) {
      if (n % p == 0) return p;
    }
    return n;
  }

  /// x has p times m rows of s numbers, y m times p. Vectors that end beyond a row go first: what
  /// they write there is written again.
  template <int p>
  void pass(int64_t m, int64_t step, int64_t s) const {
    for (int64_t q = 0; q < m; ++q) {
      Complex<T> w[p];
      for (int j = 1; j < p; ++j) w[j] = roots[j * q * step];
      for (int64_t k = (s - 1) / kLanes * kLanes; k >= 0; k -= kLanes) {
        const int64_t from = q * s + k, to = p * q * s + k;
        Complex<V> z[p];
#pragma GCC unroll 8
        for (int r = 0; r < p; ++r) {
          z[r] = {load(x.re + from + r * m * s), load(x.im + from + r * m * s)};
        }
        butterfly<T>(z);
#pragma GCC unroll 8
        for (int j = 0; j < p; ++j) {
          const Complex<V> at = j > 0 ? z[j] * w[j] : z[j];
          store(at.re, y.re + to + j * s);
          store(at.im, y.im + to + j * s);
        }
      }
    }
  }

  /// The same by the definition, where code is dear.
  void pass_of_any(int64_t p, int64_t m, int64_t step, int64_t s) const {
    for (int64_t q = 0; q < m; ++q) {
      for (int64_t j = 0; j < p; ++j) {
        T* __restrict const to_re = y.re + (p * q + j) * s;
        T* __restrict const to_im = y.im + (p * q + j) * s;
        for (int64_t k = 0; k < s; ++k) to_re[k] = to_im[k] = 0;
        int64_t turn = j * q;
        for (int64_t r = 0; r < p; ++r) {
          const T* __restrict const re = x.re + (r * m + q) * s;
          const T* __restrict const im = x.im + (r * m + q) * s;
          const Complex<T> w = roots[turn * step];
          for (int64_t k = 0; k < s; ++k) {
            to_re[k] += re[k] * w.re - im[k] * w.im;
            to_im[k] += re[k] * w.im + im[k] * w.re;
          }
          turn += j * m;
          if (turn >= p * m) turn -= p * m;
        }
      }
    }
  }

  /// The same for an odd p. Rows r and p - r of x are multiplied with the same cosines and opposite
  /// sines: in their places come their sum and their difference times -i. Reads vectors
  /// that end beyond a row.
  void pass_of_prime(int64_t p, int64_t m, int64_t step, int64_t s) const {
    const int64_t row = m * s, half = p / 2;
    for (int64_t q = 0; q < m; ++q) {
      T* const re = x.re + q * s;
      T* const im = x.im + q * s;
      T* const to_re = y.re + p * q * s;
      T* const to_im = y.im + p * q * s;
      for (int64_t k = 0; k < s; ++k) {
        Complex<T> total{re[k], im[k]};
        for (int64_t a = k + row, b = k + (p - 1) * row; a < b; a += row, b -= row) {
          const Complex<T> u{re[a], im[a]}, v{re[b], im[b]}, sum = u + v, turned = (u - v).turned();
          total = total + sum;
          re[a] = sum.re;
          im[a] = sum.im;
          re[b] = turned.re;
          im[b] = turned.im;
        }
        to_re[k] = total.re;
        to_im[k] = total.im;
      }
      for (int64_t j = 1; j <= half; ++j) {
        const Complex<T> w = roots[j * q * step], v = roots[(p - j) * q * step];
        for (int64_t k = 0; k < s; k += kLanes) {
          V a_re = load(re + k), a_im = load(im + k), b_re{}, b_im{};
          int64_t turn = j;
          for (int64_t r = 1; r <= half; ++r) {
            const Complex<T> root = roots[turn * m * step];
            const int64_t at = k + r * row, opposite = k + (p - r) * row;
            a_re += load(re + at) * root.re;
            a_im += load(im + at) * root.re;
            b_re -= load(re + opposite) * root.im;
            b_im -= load(im + opposite) * root.im;
            turn += turn < p - j ? j : j - p;
          }
          const V c_re = a_re + b_re, c_im = a_im + b_im;
          const V d_re = a_re - b_re, d_im = a_im - b_im;
          for (int64_t l = 0; l < kLanes && k + l < s; ++l) {
            const int64_t at = j * s + k + l, opposite = (p - j) * s + k + l;
            const Complex<T> one = Complex<T>{c_re[l], c_im[l]} * w;
            const Complex<T> other = Complex<T>{d_re[l], d_im[l]} * v;
            to_re[at] = one.re;
            to_im[at] = one.im;
            to_re[opposite] = other.re;
            to_im[opposite] = other.im;
          }
        }
      }
    }
  }

  using V = std::conditional_t<std::is_same_v<T, float>, FloatVector, DoubleVector>;
  static V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof(V));
    return v;
  }
  static void store(V v, T* p) { std::memcpy(p, &v, sizeof(V)); }
};

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_FFT_PASSES_H_
