// SPDX-License-Identifier: BSD-3-Clause
// XNNPACK's numbers against plain loops: linear layers, convolutions and depthwise ones of odd
// sizes, in float32, int8 and dynamic int8 with int8 and int4 weights. Prints the kernels of this
// machine.
#include <xnnpack.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "kernels.h"

namespace {

constexpr float kInfinity = INFINITY;
constexpr float kInputScale = 0.02f;
constexpr int32_t kInputZero = 3;
constexpr float kOutputScale = 0.4f;
constexpr int32_t kOutputZero = -1;
constexpr size_t kSlack = 64;

std::mt19937 generator(1);
int cases = 0;
int failures = 0;

std::vector<float> floats(size_t count, float low, float high) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> list(count + kSlack);
  for (float& each : list) each = draw(generator);
  return list;
}

template <typename T>
std::vector<T> integers(size_t count, int low, int high) {
  std::uniform_int_distribution<int> draw(low, high);
  std::vector<T> list(count + kSlack);
  for (T& each : list) each = static_cast<T>(draw(generator));
  return list;
}

bool is_ok(xnn_status status, const char* what) {
  if (status == xnn_status_success) return true;
  std::printf("FAIL %s: status %d\n", what, static_cast<int>(status));
  ++failures;
  return false;
}

void compare(const char* what, const std::vector<double>& expected,
             const std::vector<double>& found, double tolerance) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::fabs(expected[i] - found[i]));
  }
  const bool is_right = worst <= tolerance;
  std::printf("%s %s: off by %.3g\n", is_right ? "ok  " : "FAIL", what, worst);
  ++cases;
  failures += !is_right;
}

int8_t requantize(double value) {
  const double step = std::nearbyint(value / double{kOutputScale}) + kOutputZero;
  return static_cast<int8_t>(std::clamp(step, -128.0, 127.0));
}

struct Layer {
  size_t rows, columns, depth;
};

/// Weights of a linear layer as real numbers, row by row, from numbers and scales.
std::vector<double> real(const Layer& l, const std::vector<int8_t>& numbers,
                         const std::vector<float>& scales) {
  std::vector<double> list(l.columns * l.depth);
  for (size_t i = 0; i < list.size(); ++i) list[i] = numbers[i] * double{scales[i / l.depth]};
  return list;
}

template <typename Input, typename Bias>
std::vector<double> product(const Layer& l, Input input, const std::vector<double>& weights,
                            Bias bias) {
  std::vector<double> list(l.rows * l.columns);
  for (size_t m = 0; m < l.rows; ++m) {
    for (size_t n = 0; n < l.columns; ++n) {
      double sum = bias(n);
      for (size_t k = 0; k < l.depth; ++k) sum += input(m, k) * weights[n * l.depth + k];
      list[m * l.columns + n] = sum;
    }
  }
  return list;
}

template <typename T>
std::vector<double> doubles(const std::vector<T>& list, size_t count) {
  return std::vector<double>(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
}

void run(xnn_operator_t op, const char* what) {
  is_ok(xnn_run_operator(op, nullptr), what);
  xnn_delete_operator(op);
}

void linear_f32(const Layer& l, const char* what) {
  const auto x = floats(l.rows * l.depth, -1, 1);
  const auto w = floats(l.columns * l.depth, -1, 1);
  const auto b = floats(l.columns, -1, 1);
  auto y = floats(l.rows * l.columns, 0, 0);
  xnn_operator_t op = nullptr;
  if (!is_ok(xnn_create_fully_connected_nc_f32(l.depth, l.columns, l.depth, l.columns, w.data(),
                                               b.data(), -kInfinity, kInfinity, 0, nullptr, nullptr,
                                               &op),
             what)) {
    return;
  }
  is_ok(xnn_reshape_fully_connected_nc_f32(op, l.rows, nullptr), what);
  is_ok(xnn_setup_fully_connected_nc_f32(op, x.data(), y.data()), what);
  run(op, what);
  const auto expected = product(
      l, [&](size_t m, size_t k) { return double{x[m * l.depth + k]}; },
      doubles(w, l.columns * l.depth), [&](size_t n) { return double{b[n]}; });
  compare(what, expected, doubles(y, expected.size()), 1e-4);
}

void linear_qs8(const Layer& l, const char* what) {
  const auto x = integers<int8_t>(l.rows * l.depth, -128, 127);
  const auto w = integers<int8_t>(l.columns * l.depth, -127, 127);
  const auto b = integers<int32_t>(l.columns, -5000, 5000);
  const auto scales = floats(l.columns, 0.005f, 0.02f);
  auto y = integers<int8_t>(l.rows * l.columns, 0, 0);
  xnn_operator_t op = nullptr;
  if (!is_ok(xnn_create_fully_connected_nc_qs8_qc8w(l.depth, l.columns, l.depth, l.columns,
                                                    kInputZero, kInputScale, scales.data(),
                                                    w.data(), b.data(), kOutputZero, kOutputScale,
                                                    -128, 127, 0, nullptr, nullptr, &op),
             what)) {
    return;
  }
  is_ok(xnn_reshape_fully_connected_nc_qs8_qc8w(op, l.rows, nullptr), what);
  is_ok(xnn_setup_fully_connected_nc_qs8_qc8w(op, x.data(), y.data()), what);
  run(op, what);
  auto expected = product(
      l,
      [&](size_t m, size_t k) { return (x[m * l.depth + k] - kInputZero) * double{kInputScale}; },
      real(l, w, scales), [&](size_t n) { return b[n] * double{kInputScale} * double{scales[n]}; });
  for (double& each : expected) each = requantize(each);
  compare(what, expected, doubles(y, expected.size()), 1);
}

/// Dynamic rows with their scales, as a conversion leaves them.
struct Rows {
  std::vector<int8_t> numbers;
  std::vector<xnn_quantization_params> scales;

  explicit Rows(const Layer& l)
      : numbers(integers<int8_t>(l.rows * l.depth, -128, 127)),
        scales(l.rows + XNN_EXTRA_QUANTIZATION_PARAMS) {
    for (size_t i = 0; i < scales.size(); ++i) {
      const size_t row = std::min(i, l.rows - 1);
      scales[i] = {static_cast<int32_t>(row % 7), 0.01f + 0.001f * static_cast<float>(row)};
    }
  }
};

void compare_dynamic(const Layer& l, const char* what, const Rows& rows,
                     const std::vector<double>& weights, const std::vector<float>& b,
                     const std::vector<float>& y) {
  const auto expected = product(
      l,
      [&](size_t m, size_t k) {
        const double number = rows.numbers[m * l.depth + k] - rows.scales[m].zero_point;
        return number * double{rows.scales[m].scale};
      },
      weights, [&](size_t n) { return double{b[n]}; });
  compare(what, expected, doubles(y, expected.size()), 2e-3);
}

void linear_qd8_qc8(const Layer& l, const char* what) {
  const Rows rows(l);
  const auto w = integers<int8_t>(l.columns * l.depth, -127, 127);
  const auto b = floats(l.columns, -1, 1);
  const auto scales = floats(l.columns, 0.005f, 0.02f);
  auto y = floats(l.rows * l.columns, 0, 0);
  xnn_operator_t op = nullptr;
  if (!is_ok(xnn_create_fully_connected_nc_qd8_f32_qc8w(
                 l.depth, l.columns, l.depth, l.columns, scales.data(), w.data(), b.data(),
                 -kInfinity, kInfinity, 0, nullptr, nullptr, &op),
             what)) {
    return;
  }
  is_ok(xnn_reshape_fully_connected_nc_qd8_f32_qc8w(op, l.rows, nullptr), what);
  is_ok(xnn_setup_fully_connected_nc_qd8_f32_qc8w(op, rows.numbers.data(), y.data(),
                                                  rows.scales.data()),
        what);
  run(op, what);
  compare_dynamic(l, what, rows, real(l, w, scales), b, y);
}

void linear_qd8_qc4(const Layer& l, const char* what) {
  const Rows rows(l);
  const auto packed = integers<uint8_t>(l.columns * l.depth / 2, 0, 255);
  std::vector<int8_t> w(l.columns * l.depth);
  for (size_t i = 0; i < w.size(); ++i) {
    w[i] = static_cast<int8_t>((i % 2 == 0 ? packed[i / 2] & 15 : packed[i / 2] >> 4) - 8);
  }
  const auto b = floats(l.columns, -1, 1);
  const auto scales = floats(l.columns, 0.05f, 0.2f);
  auto y = floats(l.rows * l.columns, 0, 0);
  xnn_operator_t op = nullptr;
  if (!is_ok(xnn_create_fully_connected_nc_qd8_f32_qc4w(
                 l.depth, l.columns, l.depth, l.columns, 8, scales.data(), packed.data(), b.data(),
                 -kInfinity, kInfinity, 0, nullptr, nullptr, &op),
             what)) {
    return;
  }
  is_ok(xnn_reshape_fully_connected_nc_qd8_f32_qc4w(op, l.rows, nullptr), what);
  is_ok(xnn_setup_fully_connected_nc_qd8_f32_qc4w(op, rows.numbers.data(), y.data(),
                                                  rows.scales.data()),
        what);
  run(op, what);
  compare_dynamic(l, what, rows, real(l, w, scales), b, y);
}

struct Image {
  size_t side, inputs, outputs;
  uint32_t kernel, stride, groups;

  size_t out() const { return (side + kernel / 2 * 2 - kernel) / stride + 1; }
  size_t depth() const { return inputs / groups * kernel * kernel; }
};

/// One output of a convolution: `x(row, column, channel)` is called inside of the image only.
template <typename Input, typename Weight>
double window(const Image& c, size_t row, size_t column, size_t channel, Input x, Weight w) {
  const size_t padding = c.kernel / 2;
  const size_t per_group = c.inputs / c.groups;
  const size_t first = channel / (c.outputs / c.groups) * per_group;
  double sum = 0;
  for (size_t i = 0; i < size_t{c.kernel} * c.kernel; ++i) {
    const size_t r = row * c.stride + i / c.kernel - padding;
    const size_t s = column * c.stride + i % c.kernel - padding;
    if (r >= c.side || s >= c.side) continue;
    for (size_t k = 0; k < per_group; ++k) {
      sum += x((r * c.side + s) * c.inputs + first + k) * w(channel, i * per_group + k);
    }
  }
  return sum;
}

/// XNNPACK's transient memory of a convolution.
template <typename Setup>
void run_image(xnn_operator_t op, size_t size, size_t alignment, const char* what, Setup setup) {
  std::vector<char> memory(size + alignment + kSlack);
  const auto start = reinterpret_cast<uintptr_t>(memory.data());
  const size_t shift = alignment == 0 ? 0 : (alignment - start % alignment) % alignment;
  is_ok(setup(memory.data() + shift), what);
  run(op, what);
}

void image_f32(const Image& c, const char* what) {
  const auto x = floats(c.side * c.side * c.inputs, -1, 1);
  const auto w = floats(c.outputs * c.depth(), -1, 1);
  const auto b = floats(c.outputs, -1, 1);
  auto y = floats(c.out() * c.out() * c.outputs, 0, 0);
  const uint32_t p = c.kernel / 2;
  const uint32_t k = c.kernel;
  xnn_operator_t op = nullptr;
  if (!is_ok(xnn_create_convolution2d_nhwc_f32(p, p, p, p, k, k, c.stride, c.stride, 1, 1, c.groups,
                                               c.inputs / c.groups, c.outputs / c.groups, c.inputs,
                                               c.outputs, w.data(), b.data(), -kInfinity, kInfinity,
                                               0, nullptr, nullptr, &op),
             what)) {
    return;
  }
  size_t size = 0, alignment = 1, height = 0, width = 0;
  is_ok(xnn_reshape_convolution2d_nhwc_f32(op, 1, c.side, c.side, &size, &alignment, &height,
                                           &width, nullptr),
        what);
  run_image(op, size, alignment, what, [&](void* memory) {
    return xnn_setup_convolution2d_nhwc_f32(op, memory, x.data(), y.data());
  });
  std::vector<double> expected(c.out() * c.out() * c.outputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t channel = i % c.outputs;
    const size_t place = i / c.outputs;
    expected[i] =
        double{b[channel]} +
        window(
            c, place / c.out(), place % c.out(), channel, [&](size_t at) { return double{x[at]}; },
            [&](size_t n, size_t at) { return double{w[n * c.depth() + at]}; });
  }
  compare(what, expected, doubles(y, expected.size()), 1e-4);
}

void image_qs8(const Image& c, const char* what) {
  const auto x = integers<int8_t>(c.side * c.side * c.inputs, -128, 127);
  const auto w = integers<int8_t>(c.outputs * c.depth(), -127, 127);
  const auto b = integers<int32_t>(c.outputs, -5000, 5000);
  const auto scales = floats(c.outputs, 0.005f, 0.02f);
  auto y = integers<int8_t>(c.out() * c.out() * c.outputs, 0, 0);
  const uint32_t p = c.kernel / 2;
  const uint32_t k = c.kernel;
  xnn_operator_t op = nullptr;
  if (!is_ok(
          xnn_create_convolution2d_nhwc_qs8_qc8w(
              p, p, p, p, k, k, c.stride, c.stride, 1, 1, c.groups, c.inputs / c.groups,
              c.outputs / c.groups, c.inputs, c.outputs, kInputZero, kInputScale, scales.data(),
              w.data(), b.data(), kOutputZero, kOutputScale, -128, 127, 0, nullptr, nullptr, &op),
          what)) {
    return;
  }
  size_t size = 0, alignment = 1, height = 0, width = 0;
  is_ok(xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, 1, c.side, c.side, &size, &alignment, &height,
                                                &width, nullptr),
        what);
  run_image(op, size, alignment, what, [&](void* memory) {
    return xnn_setup_convolution2d_nhwc_qs8_qc8w(op, memory, x.data(), y.data());
  });
  std::vector<double> expected(c.out() * c.out() * c.outputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t channel = i % c.outputs;
    const size_t place = i / c.outputs;
    const double sum = window(
        c, place / c.out(), place % c.out(), channel,
        [&](size_t at) { return double(x[at] - kInputZero); },
        [&](size_t n, size_t at) { return double(w[n * c.depth() + at]); });
    expected[i] = requantize((sum + b[channel]) * double{kInputScale} * double{scales[channel]});
  }
  compare(what, expected, doubles(y, expected.size()), 1);
}

constexpr Layer kLayers[] = {{1, 19, 11},  {2, 32, 8},   {3, 33, 37},  {5, 7, 129},
                             {15, 40, 64}, {16, 17, 66}, {31, 64, 96}, {65, 100, 34}};
constexpr Image kImages[] = {{7, 5, 9, 1, 1, 1},    {9, 16, 32, 1, 1, 1},   {8, 3, 17, 3, 2, 1},
                             {11, 3, 8, 7, 2, 1},   {7, 13, 33, 3, 1, 1},   {6, 32, 64, 3, 1, 1},
                             {9, 12, 8, 3, 1, 4},   {5, 6, 6, 5, 1, 2},     {8, 7, 7, 3, 1, 7},
                             {9, 33, 33, 3, 2, 33}, {11, 16, 16, 5, 1, 16}, {6, 48, 48, 3, 1, 48}};

template <typename Item, typename Check>
void sweep(const char* name, const Item& item, Check check, size_t a, size_t b, size_t c) {
  char what[96];
  std::snprintf(what, sizeof(what), "%s %zu %zu %zu", name, a, b, c);
  check(item, what);
}

}  // namespace

int main() {
  if (!is_ok(xnn_initialize(nullptr), "xnn_initialize")) return 1;
  print_kernels();
  for (const Layer& l : kLayers) {
    sweep("linear f32", l, linear_f32, l.rows, l.columns, l.depth);
    sweep("linear qs8", l, linear_qs8, l.rows, l.columns, l.depth);
    sweep("linear qd8-qc8", l, linear_qd8_qc8, l.rows, l.columns, l.depth);
    const Layer even = {l.rows, l.columns, l.depth / 2 * 2};
    sweep("linear qd8-qc4", even, linear_qd8_qc4, even.rows, even.columns, even.depth);
  }
  for (const Image& c : kImages) {
    const char* f32 = c.groups == c.inputs ? "depthwise f32" : "conv f32";
    const char* qs8 = c.groups == c.inputs ? "depthwise qs8" : "conv qs8";
    sweep(f32, c, image_f32, c.side, c.inputs, c.outputs);
    sweep(qs8, c, image_qs8, c.side, c.inputs, c.outputs);
  }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}
