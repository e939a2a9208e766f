// SPDX-License-Identifier: BSD-3-Clause
/// The integer loops at each level that this processor runs: all give the bytes that the base level
/// gives, and its products are those of plain loops. Prints the levels, and a digest that is the
/// same on every machine; exits with 1 at the first
/// difference. A level between is asked for by ETX_KERNELS_ISA.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "isa/integer/integer.h"

namespace etx::portable {
extern const Integer integer_base;
#if defined(ETX_INTEGER_X86_LEVELS)
extern const Integer integer_v3;
#endif
}  // namespace etx::portable

namespace {

using namespace etx::portable;
using Bytes = std::vector<int8_t>;
using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

constexpr int64_t kZero = -7;
constexpr Bounds kBounds = {3, -120, 119};

struct Draw {
  uint64_t state;
  int32_t operator()(int32_t low, int32_t high) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return low + static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(high - low + 1));
  }
};

size_t at(int64_t i) { return static_cast<size_t>(i); }
int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// A layer of `rows` x `depth` times `depth` x `columns`, with what it needs at any level.
struct Case {
  int64_t rows, depth, columns, per_block;
  int64_t steps, whole;
  Bytes x, weight, packed;
  Ints sums, bias;
  Floats scale, floats;

  Case(int64_t m, int64_t k, int64_t n, bool int4)
      : rows(m), depth(k), columns(n), per_block(int4 ? 8 : 4) {
    Draw draw{static_cast<uint64_t>(m * 7919 + k * 104729 + n + 1)};
    steps = blocks(k, per_block) * (per_block / 4);
    whole = blocks(n, 32) * 32;
    for (int64_t i = 0; i < m * k; ++i) {
      x.push_back(static_cast<int8_t>(draw(-128, 127)));
      floats.push_back(static_cast<float>(draw(-3000, 5000)) / 97.0f);
    }
    packed.resize(at(blocks(n, 16) * blocks(k, per_block) * kBlockBytes), int4 ? -120 : 0);
    sums.resize(at(whole)), bias.resize(at(whole)), scale.resize(at(whole));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        const int32_t w = int4 ? draw(-8, 7) : draw(-128, 127);
        weight.push_back(static_cast<int8_t>(w));
        sums[at(j)] += w;
        put(j, i, w);
      }
      bias[at(j)] = draw(-9999, 9999);
      scale[at(j)] = static_cast<float>(draw(1, 999)) * 1e-6f;
    }
  }

  void put(int64_t j, int64_t i, int32_t w) {
    const int64_t block = j / 16 * blocks(depth, per_block) + i / per_block;
    int8_t& byte = packed[at((block * 16 + j % 16) * 4 + i % 4)];
    if (per_block == 4) {
      byte = static_cast<int8_t>(w);
    } else {
      const int shift = i % 8 < 4 ? 0 : 4;
      byte = static_cast<int8_t>((byte & ~(15 << shift)) | (w + 8) << shift);
    }
  }
};

/// Whatever a loop wrote, one after the other.
struct Results {
  Bytes bytes;
  template <typename T>
  void add(const std::vector<T>& values) {
    if (values.empty()) return;
    const size_t old = bytes.size();
    bytes.resize(old + values.size() * sizeof(T));
    memcpy(bytes.data() + old, values.data(), values.size() * sizeof(T));
  }
};

struct Gathered {
  int64_t stride;
  std::vector<uint8_t> rows;
  Gathered(const Integer& level, const Case& c)
      : stride(gathered_stride(level, c.steps)), rows(at(c.rows * stride + kGatheredSlack)) {}
};

Product product_of(const Integer& level, const Case& c, const Gathered& gathered) {
  Product p;
  p.rows = gathered.rows.data(), p.row_stride = gathered.stride, p.num_rows = c.rows;
  p.weight = c.packed.data(), p.columns = c.columns, p.steps = c.steps;
  p.end = blocks(c.columns, 16);
  p.scale = c.scale.data(), p.sums = c.sums.data();
  p.bounds = kBounds;
  p.least = -INFINITY, p.most = INFINITY;
  p.group_steps = c.steps;
  (void)level;
  return p;
}

Bytes multiply(const Integer& level, const Case& c) {
  Gathered gathered(level, c);
  Rows rows;
  rows.x = c.x.data(), rows.end = c.x.data() + c.x.size();
  rows.depth = rows.stride = c.depth;
  level.gather(rows, 0, c.rows, gathered.rows.data(), gathered.stride);
  Ints start(at(c.whole));
  if (!level.start_sums(c.bias.data(), c.sums.data(), static_cast<int32_t>(kZero) + level.offset,
                        1 << 30, start.data(), c.whole)) {
    std::exit(2);
  }
  Product p = product_of(level, c, gathered);
  Bytes out(at(c.rows * c.columns));
  p.start = start.data(), p.out = out.data(), p.out_stride = c.columns;
  level.product(p);
  return out;
}

/// Scales in bfloat16 give what the same numbers in float32 give.
void check_narrow(const Integer& level, const Case& c, Product p, const Floats& like) {
  if (c.rows > level.narrow_rows) return;
  std::vector<uint16_t> narrow;
  Floats wide, y(like.size()), again(like.size());
  for (const float scale : c.scale) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    narrow.push_back(static_cast<uint16_t>(bits >> 16));
    bits &= 0xFFFF0000u;
    wide.push_back(0);
    memcpy(&wide.back(), &bits, sizeof(bits));
  }
  p.scale = wide.data(), p.y = y.data();
  level.float_product_int4(p);
  p.scale = nullptr, p.narrow_scale = narrow.data(), p.y = again.data();
  level.float_product_int4(p);
  if (y != again) std::exit(3);
}

Floats multiply_floats(const Integer& level, const Case& c, bool int4) {
  Gathered gathered(level, c);
  std::vector<RowScale> scales(at(c.rows));
  level.gather_floats(c.floats.data(), c.depth, c.depth, c.rows, gathered.rows.data(),
                      gathered.stride, scales.data(), int4);
  Product p = product_of(level, c, gathered);
  Floats y(at(c.rows * c.columns));
  p.row_scales = scales.data(), p.y = y.data(), p.y_stride = c.columns;
  if (int4) {
    Ints group_sums(at(c.rows));
    level.sum_groups(p, group_sums.data());
    p.group_sums = group_sums.data();
    level.float_product_int4(p);
    check_narrow(level, c, p, y);
  } else {
    level.float_product(p);
  }
  return y;
}

Bytes depthwise(const Integer& level, int64_t channels, int64_t kernel, int64_t stride, bool paired,
                int64_t rows) {
  Draw draw{static_cast<uint64_t>(channels * 31 + kernel)};
  const int64_t points = 9, width = stride * (points - 1) + kernel;
  const int64_t count = kernel + rows - 1;
  Bytes lines(at(count * width * channels)), weight(at(kernel * kernel * channels));
  Ints start(at(channels)), sums(at(channels));
  const Floats scale(at(channels), 0.003f);
  for (int8_t& v : lines) v = static_cast<int8_t>(draw(-128, 127));
  for (size_t i = 0; i < weight.size(); ++i) {
    weight[i] = static_cast<int8_t>(draw(-128, 127));
    sums[i % at(channels)] += weight[i];
  }
  (void)level.start_sums(nullptr, sums.data(), level.offset, 0, start.data(), channels);
  std::vector<uint8_t> flipped(lines.size() + kDepthwiseSlack);
  level.flip(lines.data(), flipped.data(), static_cast<int64_t>(lines.size()));
  std::vector<const uint8_t*> places;
  for (int64_t k = 0; k < count; ++k) places.push_back(flipped.data() + k * width * channels);
  DepthwiseRow row;
  row.own = {weight.data(), start.data(), scale.data(), channels, {kernel, kernel}, paired};
  row.stride = stride, row.points = points, row.rows = rows;
  row.lines = places.data(), row.bounds = kBounds;
  std::vector<uint8_t> packed(at(level.depthwise_bytes(row.own)));
  level.pack_depthwise(row.own, packed.data());
  std::vector<uint8_t> columns(at(level.depthwise_columns(row)));
  Bytes out(at(rows * points * channels));
  row.packed = packed.data(), row.columns = columns.data(), row.out = out.data();
  level.depthwise(row);
  return out;
}

void pointwise(const Integer& level, int64_t n, Results& results) {
  Draw draw{static_cast<uint64_t>(n + 5)};
  Bytes a(at(n)), b(at(n)), y(at(n));
  for (int64_t i = 0; i < n; ++i) {
    a[at(i)] = static_cast<int8_t>(draw(-128, 127));
    b[at(i)] = static_cast<int8_t>(draw(-128, 127));
  }
  const Pair pair = {3, -4, 0.37f, 0.71f, kBounds};
  for (uint32_t scalars = 0; scalars < (n > 0 ? 4u : 1u); ++scalars) {
    level.add(a.data(), b.data(), scalars, pair, y.data(), n);
    results.add(y);
    level.mul(a.data(), b.data(), scalars, pair, y.data(), n);
    results.add(y);
  }
  Ints sums(at(n), 1000);
  level.accumulate(a.data(), sums.data(), n);
  results.add(sums);
  level.requantize(sums.data(), 0.11f, kBounds, y.data(), n);
  results.add(y);
  level.keep_largest(b.data(), y.data(), n);
  results.add(y);
}

void between(const Integer& level, int64_t channels, Results& results) {
  Draw draw{static_cast<uint64_t>(channels + 3)};
  const int64_t row = 5 * channels;
  Bytes image(at(2 * row)), y(at(7 * channels));
  for (int8_t& v : image) v = static_cast<int8_t>(draw(-128, 127));
  std::vector<Between> points = {{0, 0}, {4, 0}, {3, kOne}};
  while (points.size() < 7) points.push_back({draw(0, 3), draw(0, kOne)});
  Ints line(at(row));
  level.between_rows(image.data(), image.data() + row, draw(0, kOne), -7, line.data(), row);
  results.add(line);
  level.between_points(line.data(), points.data(), 7, channels, 1.0f / kOne / kOne, kBounds,
                       y.data());
  results.add(y);
}

constexpr int64_t kRows[] = {1, 2, 3, 7, 8, 13, 17};
constexpr int64_t kDepths[] = {1, 4, 9, 33, 64, 130};
constexpr int64_t kColumns[] = {1, 15, 16, 33, 64, 80};

Results results_of(const Integer& level) {
  Results results;
  for (const int64_t m : kRows) {
    for (const int64_t k : kDepths) {
      for (const int64_t n : kColumns) {
        const Case c(m, k, n, false), small(m, k, n, true);
        results.add(multiply(level, c));
        results.add(multiply_floats(level, c, false));
        results.add(multiply_floats(level, small, true));
      }
    }
  }
  for (const int64_t channels : {1, 3, 16, 31, 64, 100}) {
    for (const int64_t kernel : {1, 3, 5}) {
      results.add(depthwise(level, channels, kernel, 1, false, 1));
      results.add(depthwise(level, channels, kernel, 2, false, 1));
      for (const int64_t rows : {1, 2}) {
        results.add(depthwise(level, channels, kernel, 1, true, rows));
      }
    }
  }
  for (const int64_t n : {0, 1, 7, 16, 65, 300}) pointwise(level, n, results);
  for (const int64_t channels : {1, 3, 4, 8, 16, 31, 100}) between(level, channels, results);
  return results;
}

/// The products of the base level, by plain loops.
void check_base() {
  for (const int64_t m : kRows) {
    for (const int64_t k : kDepths) {
      const Case c(m, k, 33, false);
      const Bytes got = multiply(integer_base, c);
      for (int64_t i = 0; i < m * 33; ++i) {
        int64_t sum = c.bias[at(i % 33)];
        for (int64_t d = 0; d < k; ++d) {
          sum += (c.x[at(i / 33 * k + d)] - kZero) * c.weight[at(i % 33 * k + d)];
        }
        const float scaled = static_cast<float>(sum) * c.scale[at(i % 33)];
        const float moved = std::nearbyintf(scaled) + static_cast<float>(kBounds.zero_point);
        const float want = std::fmin(std::fmax(moved, static_cast<float>(kBounds.low)),
                                     static_cast<float>(kBounds.high));
        if (static_cast<float>(got[at(i)]) == want) continue;
        std::printf("base: %d, not %g, in %d x %d\n", got[at(i)], static_cast<double>(want),
                    static_cast<int>(m), static_cast<int>(k));
        std::exit(1);
      }
    }
  }
}

/// Of all results: the same on every machine.
uint64_t digest(const Results& results) {
  uint64_t hash = 14695981039346656037u;
  for (const int8_t byte : results.bytes)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  return hash;
}

void compare(const Integer& level, const Results& base) {
  const Results own = results_of(level);
  for (size_t i = 0; i < base.bytes.size(); ++i) {
    if (own.bytes[i] == base.bytes[i]) continue;
    std::printf("%s differs from base at byte %zu of %zu\n", level.name, i, base.bytes.size());
    std::exit(1);
  }
  std::printf("%s\n", level.name);
}

}  // namespace

int main() {
  check_base();
  const Results base = results_of(integer_base);
  std::printf("base %016llx\n", static_cast<unsigned long long>(digest(base)));
#if defined(ETX_INTEGER_X86_LEVELS)
  if (strcmp(integer().name, "base") != 0) compare(integer_v3, base);
  if (&integer() == &integer_v3) return 0;
#endif
  if (&integer() != &integer_base) compare(integer(), base);
  return 0;
}
