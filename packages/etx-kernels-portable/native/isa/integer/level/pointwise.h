// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_INTEGER_POINTWISE_H_
#define ETX_PORTABLE_INTEGER_POINTWISE_H_

/// Loops over rows of int8, element by element.

#include "isa/integer/level/requantize.h"

namespace etx::portable {
namespace {

inline VecI read_operand(const int8_t* x, bool is_scalar, int64_t i) {
  return is_scalar ? splat(static_cast<int32_t>(*x)) : widen_bytes(x + i);
}

/// Whole vectors, then what is left as one.
template <typename F>
inline void each_pair(const int8_t* a, const int8_t* b, uint32_t scalars, int8_t* y, int64_t n,
                      const F& f) {
  const bool a_is_scalar = (scalars & 1u) != 0, b_is_scalar = (scalars & 2u) != 0;
  int8_t last[3][kLanes];
  while (n > 0) {
    const bool is_part = n < kLanes;
    const int64_t count = is_part ? kLanes : n / kLanes * kLanes;
    const auto left = static_cast<size_t>(n);
    int8_t* const to = is_part ? last[2] : y;
    if (is_part) {
      a = static_cast<int8_t*>(memcpy(last[0], a, a_is_scalar ? 1 : left));
      b = static_cast<int8_t*>(memcpy(last[1], b, b_is_scalar ? 1 : left));
    }
    for (int64_t i = 0; i < count; i += kLanes) {
      store_bytes(to + i, f(read_operand(a, a_is_scalar, i), read_operand(b, b_is_scalar, i)));
    }
    if (is_part) memcpy(y, to, left);
    n -= count, y += count;
    a += a_is_scalar ? 0 : count, b += b_is_scalar ? 0 : count;
  }
}

void add(const int8_t* a, const int8_t* b, uint32_t scalars, const Pair& pair, int8_t* y,
         int64_t n) {
  const Requantize to_bytes(pair.bounds);
  const Pair p = pair;
  each_pair(a, b, scalars, y, n, [&](VecI left, VecI right) {
    return to_bytes.from_scaled(to_floats(left - p.a_zero) * p.a_scale +
                                to_floats(right - p.b_zero) * p.b_scale);
  });
}

void mul(const int8_t* a, const int8_t* b, uint32_t scalars, const Pair& pair, int8_t* y,
         int64_t n) {
  const Requantize to_bytes(pair.a_scale, pair.bounds);
  const Pair p = pair;
  each_pair(a, b, scalars, y, n, [&](VecI left, VecI right) {
    return to_bytes.from_sums((left - p.a_zero) * (right - p.b_zero));
  });
}

void accumulate(const int8_t* x, int32_t* sums, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(sums + i, load_ints(sums + i) + widen_bytes(x + i));
  for (; i < n; ++i, stay_scalar()) sums[i] += x[i];
}

void keep_largest(const int8_t* x, int8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
}

void requantize(const int32_t* sums, float scale, const Bounds& bounds, int8_t* y, int64_t n) {
  const Requantize to_bytes(scale, bounds);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_bytes(y + i, to_bytes.from_sums(load_ints(sums + i)));
  for (; i < n; ++i) store_bytes_part(y + i, to_bytes.from_sums(splat(sums[i])), 1);
}

inline bool has_any(VecI v) {
  int32_t t[kLanes], any = 0;
  memcpy(t, &v, sizeof(t));
  for (const int32_t number : t) any |= number;
  return any != 0;
}

bool start_sums(const int32_t* bias, const int32_t* sums, int32_t offset, int32_t most,
                int32_t* start, int64_t n) {
  const auto factor = static_cast<uint32_t>(offset);
  VecI outside = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VecI b = bias == nullptr ? VecI{} : load_ints(bias + i);
    outside |= (b < -most) | (b > most);
    store(start + i, to_signed(to_unsigned(b) - to_unsigned(load_ints(sums + i)) * factor));
  }
  bool fits = !has_any(outside);
  for (; i < n; ++i, stay_scalar()) {
    const int32_t b = bias == nullptr ? 0 : bias[i];
    fits &= b >= -most && b <= most;
    start[i] =
        static_cast<int32_t>(static_cast<uint32_t>(b) - static_cast<uint32_t>(sums[i]) * factor);
  }
  return fits;
}

/// A positive finite number has bits from 1 to those before infinity's.
bool are_scales(const float* x, int64_t n) {
  uint32_t worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t b;
    memcpy(&b, x + i, sizeof(b));
    worst = b - 1 > worst ? b - 1 : worst;
  }
  return worst < 0x7F800000u - 1;
}

}  // namespace
}  // namespace etx::portable

#endif  // ETX_PORTABLE_INTEGER_POINTWISE_H_
