// SPDX-License-Identifier: BSD-3-Clause
/// XNNPACK's int8 operators behind a C interface: each is created once and timed again and again.

#include <pthreadpool.h>
#include <xnnpack.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

struct Operator {
  xnn_operator_t made = nullptr;
  pthreadpool_t pool = nullptr;
  void* workspace = nullptr;
};

constexpr int8_t kZeroPoint = 3;

pthreadpool_t pool_of(int threads) {
  static pthreadpool_t const two = pthreadpool_create(2);
  return threads == 1 ? nullptr : two;
}

bool begin() {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  return ready;
}

}  // namespace

/// y = x w + bias of (m, k) and (n, k); scales of input and output are 1. Null where refused.
extern "C" Operator* make_linear(int64_t m, int64_t k, int64_t n, const float* scale,
                                 const int8_t* weight, const int32_t* bias, const int8_t* x,
                                 int8_t* y, int threads) {
  Operator* const op = new Operator;
  op->pool = pool_of(threads);
  const size_t inputs = static_cast<size_t>(k), outputs = static_cast<size_t>(n);
  const bool done = begin() &&
                    xnn_create_fully_connected_nc_qs8_qc8w(
                        inputs, outputs, inputs, outputs, kZeroPoint, 1.0f, scale, weight, bias, 0,
                        1.0f, -128, 127, 0, nullptr, nullptr, &op->made) == xnn_status_success &&
                    xnn_reshape_fully_connected_nc_qs8_qc8w(op->made, static_cast<size_t>(m),
                                                            op->pool) == xnn_status_success &&
                    xnn_setup_fully_connected_nc_qs8_qc8w(op->made, x, y) == xnn_status_success;
  return done ? op : nullptr;
}

/// The same of a convolution with as much padding as keeps the size; images are NHWC.
extern "C" Operator* make_conv(int64_t size, int64_t cin, int64_t cout, int64_t kernel,
                               int64_t stride, int64_t groups, const float* scale,
                               const int8_t* weight, const int32_t* bias, const int8_t* x,
                               int8_t* y, int threads) {
  Operator* const op = new Operator;
  op->pool = pool_of(threads);
  const uint32_t pad = static_cast<uint32_t>(kernel / 2), k = static_cast<uint32_t>(kernel);
  const uint32_t step = static_cast<uint32_t>(stride);
  const size_t side = static_cast<size_t>(size);
  const size_t inputs = static_cast<size_t>(cin), outputs = static_cast<size_t>(cout);
  size_t bytes = 0, alignment = 1;
  if (!begin() ||
      xnn_create_convolution2d_nhwc_qs8_qc8w(
          pad, pad, pad, pad, k, k, step, step, 1, 1, static_cast<uint32_t>(groups),
          static_cast<size_t>(cin / groups), static_cast<size_t>(cout / groups), inputs, outputs,
          kZeroPoint, 1.0f, scale, weight, bias, 0, 1.0f, -128, 127, 0, nullptr, nullptr,
          &op->made) != xnn_status_success ||
      xnn_reshape_convolution2d_nhwc_qs8_qc8w(op->made, 1, side, side, &bytes, &alignment, nullptr,
                                              nullptr, op->pool) != xnn_status_success) {
    return nullptr;
  }
  op->workspace = std::aligned_alloc(64, (bytes + 128) / 64 * 64);
  const bool done =
      xnn_setup_convolution2d_nhwc_qs8_qc8w(op->made, op->workspace, x, y) == xnn_status_success;
  return done ? op : nullptr;
}

/// Nanoseconds of `count` calls, -1 where one failed.
extern "C" int64_t time_operator(const Operator* op, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    if (xnn_run_operator(op->made, op->pool) != xnn_status_success) return -1;
  }
  const auto spent = std::chrono::steady_clock::now() - start;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
}
