// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/product.h"

#include "cortex_m/machine.h"

namespace etx::cortex_m {
namespace {

#if defined(ETX_CORTEX_M_MVE)

/// Four channels: what multiplies, and how the sums begin and end.
struct Four {
  const int8_t* rows[4];
  int32_t start[4];
  int32x4_t multipliers, shifts;
};

/// The sums, with the products of `x` and four rows of weights.
inline int32x4_t add_products(const int8_t* x, const Four& four, int32_t depth) {
  const int8_t *w0 = four.rows[0], *w1 = four.rows[1], *w2 = four.rows[2], *w3 = four.rows[3];
  int32_t a = four.start[0], b = four.start[1], c = four.start[2], d = four.start[3];
  int32x4_t sums;
  asm volatile(
      "dlstp.8 lr, %[n]\n"
      "1: vldrb.8 q0, [%[x]], #16\n"
      "vldrb.8 q1, [%[w0]], #16\n"
      "vmladava.s8 %[a], q0, q1\n"
      "vldrb.8 q1, [%[w1]], #16\n"
      "vmladava.s8 %[b], q0, q1\n"
      "vldrb.8 q1, [%[w2]], #16\n"
      "vmladava.s8 %[c], q0, q1\n"
      "vldrb.8 q1, [%[w3]], #16\n"
      "vmladava.s8 %[d], q0, q1\n"
      "letp lr, 1b\n"
      "vmov %q[sums][2], %q[sums][0], %[a], %[c]\n"
      "vmov %q[sums][3], %q[sums][1], %[b], %[d]\n"
      : [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [a] "+Te"(a),
        [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [sums] "=&w"(sums)
      : [n] "r"(depth)
      : "lr", "q0", "q1", "cc", "memory");
  return sums;
}

/// `is_plain`: there are four channels, and no shift is above 0.
template <bool is_plain>
inline void multiply_four(const Four& four, const Epilogue& end, int32_t depth, Rows x, int8_t* to,
                          int32_t to_step, mve_pred16_t few) {
  const int8_t* at = x.first;
  const int32_t offset = end.offset, step = x.step;
  const int32x4_t low = vdupq_n_s32(end.low), high = vdupq_n_s32(end.high);
  for (int32_t p = x.count; p > 0; --p, at += step, to += to_step) {
    int32x4_t sums = add_products(at, four, depth);
    sums = vaddq_n_s32(requantize<!is_plain>(sums, four.multipliers, four.shifts), offset);
    sums = vminq_s32(vmaxq_s32(sums, low), high);
    if (is_plain) {
      vstrbq_s32(to, sums);
    } else {
      vstrbq_p_s32(to, sums, few);
    }
  }
}

#elif defined(__ARM_ARCH_6M__)

/// Adds the products of `x` with two rows of weights. In eight registers: all that its loads take.
__attribute__((noinline)) void add_products(const int8_t* x, const int8_t* w0, const int8_t* w1,
                                            int32_t depth, int32_t* sums) {
  int32_t a = sums[0], b = sums[1], k = -depth, value, weight;
  x += depth;
  w0 += depth;
  w1 += depth;
  asm volatile(
      ".syntax unified\n"
      "1: ldrsb %[value], [%[x], %[k]]\n"
      "ldrsb %[weight], [%[w0], %[k]]\n"
      "muls %[weight], %[value], %[weight]\n"
      "adds %[a], %[a], %[weight]\n"
      "ldrsb %[weight], [%[w1], %[k]]\n"
      "muls %[weight], %[value], %[weight]\n"
      "adds %[b], %[b], %[weight]\n"
      "adds %[k], #1\n"
      "bne 1b\n"
      : [a] "+l"(a), [b] "+l"(b), [k] "+l"(k), [value] "=&l"(value), [weight] "=&l"(weight)
      : [x] "l"(x), [w0] "l"(w0), [w1] "l"(w1)
      : "cc", "memory");
  sums[0] = a;
  sums[1] = b;
}

#else

/// Adds the products of `x` with two rows of weights.
inline void add_products(const int8_t* x, const int8_t* w0, const int8_t* w1, int32_t depth,
                         int32_t* sums) {
  int32_t a = sums[0], b = sums[1], k = 0;
#if defined(ETX_CORTEX_M_DSP)
  for (; k + 4 <= depth; k += 4) {
    const uint32_t word = load_word(x + k), first = load_word(w0 + k), second = load_word(w1 + k);
    const int16x2_t even = even_bytes(word), odd = odd_bytes(word);
    a = __smlad(odd, odd_bytes(first), __smlad(even, even_bytes(first), a));
    b = __smlad(odd, odd_bytes(second), __smlad(even, even_bytes(second), b));
  }
#endif
  for (; k < depth; ++k) {
    a = wrapping_add(a, x[k] * w0[k]);
    b = wrapping_add(b, x[k] * w1[k]);
  }
  sums[0] = a;
  sums[1] = b;
}

#endif

#if defined(ETX_CORTEX_M_DSP)

/// Adds the products of two rows with two rows of weights; second rows follow the first. In all the
/// registers that there are: compiled C++ keeps some of them in memory.
__attribute__((noinline)) void add_products(const int8_t* x, const int8_t* w, int32_t depth,
                                            int32_t* sums) {
  int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
  uint32_t even0, odd0, even1, odd1, even, odd;
  const int8_t* const end = x + (depth & ~3);
  if (end != x) {
    asm volatile(
        "1: ldr %[even1], [%[w], %[depth]]\n"
        "ldr %[even0], [%[w]], #4\n"
        "ldr %[even], [%[x], %[depth]]\n"
        "sxtb16 %[odd1], %[even1], ror #8\n"
        "sxtb16 %[odd0], %[even0], ror #8\n"
        "sxtb16 %[even1], %[even1]\n"
        "sxtb16 %[even0], %[even0]\n"
        "sxtb16 %[odd], %[even], ror #8\n"
        "sxtb16 %[even], %[even]\n"
        "smlad %[c], %[odd], %[odd0], %[c]\n"
        "smlad %[d], %[odd], %[odd1], %[d]\n"
        "smlad %[c], %[even], %[even0], %[c]\n"
        "smlad %[d], %[even], %[even1], %[d]\n"
        "ldr %[even], [%[x]], #4\n"
        "sxtb16 %[odd], %[even], ror #8\n"
        "sxtb16 %[even], %[even]\n"
        "smlad %[a], %[odd], %[odd0], %[a]\n"
        "smlad %[b], %[odd], %[odd1], %[b]\n"
        "smlad %[a], %[even], %[even0], %[a]\n"
        "smlad %[b], %[even], %[even1], %[b]\n"
        "cmp %[x], %[end]\n"
        "bne 1b\n"
        : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x), [w] "+r"(w),
          [even0] "=&r"(even0), [odd0] "=&r"(odd0), [even1] "=&r"(even1), [odd1] "=&r"(odd1),
          [even] "=&r"(even), [odd] "=&r"(odd)
        : [depth] "r"(depth), [end] "r"(end)
        : "cc", "memory");
  }
  for (int32_t k = 0; k < (depth & 3); ++k) {
    a = wrapping_add(a, x[k] * w[k]);
    b = wrapping_add(b, x[k] * w[k + depth]);
    c = wrapping_add(c, x[k + depth] * w[k]);
    d = wrapping_add(d, x[k + depth] * w[k + depth]);
  }
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}

#endif

}  // namespace

#if defined(ETX_CORTEX_M_MVE)

void multiply(const Product& m, const Rows& x, int8_t* to, int32_t to_step) {
  const bool grows = has_growth(m.shifts, m.channels);
  for (int32_t channel = 0; channel < m.channels; channel += 4, to += 4) {
    const int32_t count = m.channels - channel;
    const mve_pred16_t few = vctp32q(static_cast<uint32_t>(count));
    Four four;
    four.multipliers = vldrwq_z_s32(m.multipliers + channel, few);
    four.shifts = vldrwq_z_s32(m.shifts + channel, few);
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t at = i < count ? channel + i : channel;
      four.rows[i] = m.weight + at * m.depth;
      four.start[i] = m.start[at];
    }
    if (count >= 4 && !grows) {
      multiply_four<true>(four, m.epilogue, m.depth, x, to, to_step, few);
    } else {
      multiply_four<false>(four, m.epilogue, m.depth, x, to, to_step, few);
    }
  }
}

#else

void multiply(const Product& m, const Rows& x, int8_t* to, int32_t to_step) {
  for (int32_t c = 0; c < m.channels; c += 2, to += 2) {
    const bool is_pair = c + 1 < m.channels;
    const int32_t other = is_pair ? 1 : 0;
    const int8_t* const w0 = m.weight + c * m.depth;
    const int8_t* const w1 = w0 + other * m.depth;
    const int32_t first = m.start[c], second = m.start[c + other];
    const Factor factors[2] = {{m.multipliers[c], m.shifts[c]},
                               {m.multipliers[c + other], m.shifts[c + other]}};
    const Epilogue end = m.epilogue;
    const int8_t* at = x.first;
    int8_t* out = to;
    int32_t p = 0;
#if defined(ETX_CORTEX_M_DSP)
    const int32_t pairs = is_pair && x.step == m.depth ? x.count / 2 : 0;
    for (; p < 2 * pairs; p += 2, at += 2 * x.step) {
      int32_t sums[4] = {first, second, first, second};
      add_products(at, w0, m.depth, sums);
      for (int i = 0; i < 4; i += 2, out += to_step) {
        out[0] = end(sums[i], factors[0]);
        out[1] = end(sums[i + 1], factors[1]);
      }
    }
#endif
    for (; p < x.count; ++p, at += x.step, out += to_step) {
      int32_t sums[2] = {first, second};
      add_products(at, w0, w1, m.depth, sums);
      out[0] = end(sums[0], factors[0]);
      if (is_pair) out[1] = end(sums[1], factors[1]);
    }
  }
}

#endif

void multiply(Product m, const Rows& x, Offsets offsets, int32_t* start, int8_t* to) {
  const int32_t* const given = m.start;
  m.start = start;
  Rows row = {x.first, 1, 0};
  for (int32_t p = 0; p < x.count; ++p, row.first += x.step, to += m.channels) {
    int32_t sum = 0;
    for (int32_t k = 0; k < m.depth; ++k) sum += row.first[k] + offsets.x;
    for (int32_t c = 0; c < m.channels; ++c) {
      start[c] = wrapping_add(given[c], sum * offsets.weight);
    }
    multiply(m, row, to, m.channels);
  }
}

void fold_offset(const Product& m, const int32_t* bias, int32_t offset, int32_t* to) {
  const int8_t* row = m.weight;
  for (int32_t c = 0; c < m.channels; ++c, row += m.depth) {
    int32_t sum = 0;
    for (int32_t k = 0; k < m.depth; ++k) sum += row[k];
    to[c] = wrapping_add(bias == nullptr ? 0 : bias[c], offset * sum);
  }
}

}  // namespace etx::cortex_m
