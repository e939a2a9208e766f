// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "cortex_m/families.h"
#include "cortex_m/operands.h"

namespace etx::cortex_m {
namespace {

/// 2^(-1/2), 2^(-1/4), ... of 2^-32; what a bit of the exponent multiplies.
constexpr uint32_t kRoots[] = {
    3037000500u, 3611622603u, 3938502376u, 4112874773u, 4202935003u, 4248701965u, 4271771996u,
    4283353945u, 4289156690u, 4292061010u, 4293513907u, 4294240540u, 4294603903u, 4294785595u,
    4294876445u, 4294921870u, 4294944583u, 4294955939u, 4294961618u, 4294964457u, 4294965876u,
    4294966586u, 4294966941u, 4294967119u, 4294967207u, 4294967252u};

/// e^-x in 2^-31, for x of at least 0.
uint32_t falling_exponential(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  const auto exponent = static_cast<int32_t>(bits >> 23 & 255) - 127;
  if (exponent < -31) return uint32_t{1} << 31;
  if (exponent > 4) return 0;
  constexpr uint64_t kLog2E = 3098164009;
  const uint64_t power = ((bits & 0x7fffffu) | 0x800000u) * kLog2E;
  const auto scaled = static_cast<uint64_t>(power >> (22 - exponent));
  const auto fraction = static_cast<uint32_t>(scaled);
  uint64_t value = UINT32_MAX;
  for (int i = 0; i < 26; ++i) {
    if ((fraction >> (31 - i) & 1) != 0) value = value * kRoots[i] >> 32;
  }
  const auto whole = static_cast<uint32_t>(scaled >> 32);
  return whole > 30 ? 0 : static_cast<uint32_t>(value >> 1 >> whole);
}

/// Elements of one softmax: `count` of them, `step` bytes from each other.
struct Line {
  int64_t count, step;
  float scale;
  int32_t zero_point;

  float logit(int8_t x) const { return static_cast<float>(x - zero_point) * scale; }
};

/// 256 * e^x / (sum of all e^x) - 128, halves to even.
void run(const Line& line, const int8_t* from, int8_t* to) {
  const int64_t end = line.count * line.step;
  int8_t most = -128;
  for (int64_t i = 0; i < end; i += line.step) most = from[i] > most ? from[i] : most;
  const float top = line.logit(most);
  uint64_t sum = 0;
  for (int64_t i = 0; i < end; i += line.step) {
    sum += falling_exponential(top - line.logit(from[i]));
  }
  for (int64_t i = 0; i < end; i += line.step) {
    const uint64_t part = uint64_t{falling_exponential(top - line.logit(from[i]))} << 8;
    uint64_t share = part / sum;
    const uint64_t rest = 2 * (part % sum);
    if (rest > sum || (rest == sum && (share & 1) != 0)) ++share;
    to[i] = static_cast<int8_t>((share > 255 ? 255 : static_cast<int32_t>(share)) - 128);
  }
}

/// Along any dimension. The scale of input is input_multiplier * 2^(input_shift - 57); `diff_min`
/// changes nothing.
Error softmax_out(Context& context, const Tensor& input, int64_t dim, int64_t input_zero_point,
                  int64_t output_zero_point, int64_t multiplier, int64_t shift, int64_t,
                  Tensor& out) {
  const ssize_t rank = input.dim();
  ETX_CHECK(context, is_int8(input) && is_int8(out) && is_like(input, out), InvalidArgument,
            "input and out must be int8 of the same sizes and order of memory");
  ETX_CHECK(context, dim >= -rank && dim < rank, InvalidArgument, "dim must be one of input's");
  ETX_CHECK(context,
            is_offset(input_zero_point) && output_zero_point == -128 && multiplier > 0 &&
                multiplier <= INT32_MAX && shift >= -31 && shift <= 62,
            InvalidArgument,
            "output_zero_point must be -128, multiplier and shift a positive scale");
  const auto along = static_cast<ssize_t>(dim < 0 ? dim + rank : dim);
  if (input.numel() == 0) return Error::Ok;
  auto scale = static_cast<float>(static_cast<int32_t>(multiplier));
  for (int64_t i = shift; i < 57; ++i) scale *= 0.5f;
  for (int64_t i = shift; i > 57; --i) scale *= 2.0f;
  const int64_t count = input.size(along);
  const Line line = {count, count == 1 ? 1 : input.stride(along), scale,
                     static_cast<int32_t>(input_zero_point)};
  ETX_CHECK(context, line.count <= (1 << 24), NotSupported, "a sum must have at most 2^24 terms");
  const int8_t* const from = input.const_data_ptr<int8_t>();
  int8_t* const to = out.mutable_data_ptr<int8_t>();
  const int64_t step = line.step, block = line.count * step;
  for (int64_t first = 0; first < input.numel(); first += block) {
    for (int64_t i = first; i < first + step; ++i) run(line, from + i, to + i);
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {ETX_CORTEX_M_KERNEL("cortex_m::softmax.out", softmax_out)};

}  // namespace

ETX_KERNEL_TABLE(softmax_kernels, kRows);

}  // namespace etx::cortex_m
