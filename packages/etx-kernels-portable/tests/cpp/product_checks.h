// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_PRODUCT_CHECKS_H_
#define ETX_TESTS_PRODUCT_CHECKS_H_

/// Checks of products of every dtype.

#include <cmath>
#include <type_traits>
#include <vector>

#include <etx/dtype.h>

#include "check.h"

namespace {

template <typename T>
std::vector<T> whole(Check& t, int64_t n) {
  std::vector<T> values;
  for (const float v : t.draw(n)) values.push_back(static_cast<T>(static_cast<int64_t>(v * 250)));
  return values;
}

/// Of whole numbers, whose products are exact in every type.
template <typename T>
void check_product(Check& t, void (*loop)(const etx::portable::Product<T>&)) {
  constexpr int64_t width = etx::portable::kPanel<T>;
  for (const int64_t rows : {1, 3, 8, 13}) {
    for (const int64_t columns : {int64_t{1}, width - 1, width}) {
      const int64_t depth = 7 * rows - 6;
      const std::vector<T> a = whole<T>(t, rows * depth), b = whole<T>(t, depth * width),
                           bias = whole<T>(t, rows);
      std::vector<T> c(static_cast<size_t>(rows * columns));
      etx::portable::Product<T> p;
      p.a = a.data(), p.a_stride = depth, p.rows = rows, p.depth = depth, p.columns = columns;
      p.panel = b.data(), p.row_bias = bias.data();
      p.c = c.data(), p.row_step = 1, p.column_step = rows;
      loop(p);
      for (int64_t i = 0; i < rows * columns; ++i) {
        const int64_t row = i % rows, column = i / rows;
        T sum = bias[static_cast<size_t>(row)];
        for (int64_t k = 0; k < depth; ++k) {
          const auto at = static_cast<size_t>(row * depth + k);
          sum = static_cast<T>(
              sum + etx::portable::times(a[at], b[static_cast<size_t>(k * width + column)]));
        }
        t.equal(static_cast<double>(c[static_cast<size_t>(i)]), static_cast<double>(sum));
      }
    }
  }
}
void check_product_float(Check& t) { check_product<float>(t, t.isa.product_float); }
void check_product_double(Check& t) { check_product<double>(t, t.isa.product_double); }
void check_product_short(Check& t) { check_product<uint16_t>(t, t.isa.product_short); }
void check_product_int(Check& t) { check_product<uint32_t>(t, t.isa.product_int); }
void check_product_long(Check& t) { check_product<uint64_t>(t, t.isa.product_long); }

/// Whole numbers that every dtype holds, as elements of `type`.
template <typename W>
std::vector<W> elements(Check& t, int64_t n, std::vector<double>& values) {
  std::vector<W> bits;
  for (const float v : t.draw(n)) {
    const float small = std::trunc(8 * v);
    values.push_back(static_cast<double>(small));
    if constexpr (std::is_unsigned_v<W>) {
      bits.push_back(static_cast<W>(static_cast<int64_t>(small)));
    } else {
      bits.push_back(W(small));
    }
  }
  return bits;
}

/// `given` is `expected` modulo 2^bits of T.
template <typename T>
void congruent(const Check& t, T given, double expected) {
  if constexpr (std::is_unsigned_v<T>) {
    t.equal(static_cast<double>(given),
            static_cast<double>(static_cast<T>(static_cast<int64_t>(expected))));
  } else {
    t.equal(static_cast<double>(given), expected);
  }
}

template <typename T, typename W>
void check_dots(Check& t, void (*loop)(const etx::portable::Dots<T>&)) {
  for (const int64_t rows : {1, 2, 4, 7}) {
    for (const size_t size : kSizes) {
      const auto depth = static_cast<int64_t>(size);
      constexpr int64_t columns = 9;
      std::vector<double> xs, ws;
      const std::vector<T> x = elements<T>(t, rows * depth, xs), bias = elements<T>(t, columns, xs);
      const std::vector<W> w = elements<W>(t, columns * depth, ws);
      std::vector<T> y(static_cast<size_t>(rows * columns));
      etx::portable::Dots<T> d;
      d.x = x.data(), d.x_stride = depth, d.rows = rows;
      d.w = w.data(), d.w_stride = depth, d.depth = depth, d.end = columns;
      d.bias = bias.data(), d.y = y.data(), d.y_stride = columns;
      loop(d);
      for (int64_t i = 0; i < rows * columns; ++i) {
        const auto row = static_cast<size_t>(i / columns),
                   column = static_cast<size_t>(i % columns);
        double sum = xs[static_cast<size_t>(rows) * size + column];
        for (size_t k = 0; k < size; ++k) sum += xs[row * size + k] * ws[column * size + k];
        congruent(t, y[static_cast<size_t>(i)], sum);
      }
    }
  }
}
void check_dots_half(Check& t) { check_dots<float, etx::Half>(t, t.isa.dots_half); }
void check_dots_bfloat16(Check& t) { check_dots<float, etx::BFloat16>(t, t.isa.dots_bfloat16); }
void check_dots_double(Check& t) { check_dots<double, double>(t, t.isa.dots_double); }
void check_dots_byte(Check& t) { check_dots<uint16_t, uint8_t>(t, t.isa.dots_byte); }
void check_dots_int(Check& t) { check_dots<uint32_t, uint32_t>(t, t.isa.dots_int); }
void check_dots_long(Check& t) { check_dots<uint64_t, uint64_t>(t, t.isa.dots_long); }

template <typename T, typename W>
void check_accumulate(Check& t, void (*loop)(const etx::portable::Accumulation<T>&)) {
  for (const int64_t rows : {1, 2, 4, 7}) {
    for (const size_t size : kSizes) {
      const auto columns = static_cast<int64_t>(size);
      const int64_t depth = 2 * rows + 3;
      std::vector<double> as, bs;
      const std::vector<T> a = elements<T>(t, rows * depth, as);
      const std::vector<W> b = elements<W>(t, depth * columns, bs);
      std::vector<T> y(static_cast<size_t>(rows * columns), T(7));
      etx::portable::Accumulation<T> d;
      d.a = a.data(), d.a_stride = depth, d.rows = rows, d.depth = depth;
      d.columns = columns, d.b = b.data(), d.b_stride = columns;
      d.y = y.data(), d.y_stride = columns;
      loop(d);
      for (size_t i = 0; i < y.size(); ++i) {
        double sum = 0;
        for (size_t k = 0; k < static_cast<size_t>(depth); ++k) {
          sum += as[i / size * static_cast<size_t>(depth) + k] * bs[k * size + i % size];
        }
        congruent(t, y[i], sum);
      }
    }
  }
}
void check_accumulate_float(Check& t) { check_accumulate<float, float>(t, t.isa.accumulate_float); }
void check_accumulate_half(Check& t) {
  check_accumulate<float, etx::Half>(t, t.isa.accumulate_half);
}
void check_accumulate_bfloat16(Check& t) {
  check_accumulate<float, etx::BFloat16>(t, t.isa.accumulate_bfloat16);
}
void check_accumulate_double(Check& t) {
  check_accumulate<double, double>(t, t.isa.accumulate_double);
}
void check_accumulate_byte(Check& t) {
  check_accumulate<uint16_t, uint8_t>(t, t.isa.accumulate_byte);
}
void check_accumulate_int(Check& t) {
  check_accumulate<uint32_t, uint32_t>(t, t.isa.accumulate_int);
}

}  // namespace

#endif  // ETX_TESTS_PRODUCT_CHECKS_H_
