// SPDX-License-Identifier: BSD-3-Clause
#include "cortex_m/families.h"
#include "cortex_m/image.h"
#include "cortex_m/machine.h"

namespace etx::cortex_m {
namespace {

struct Depthwise {
  Image in, out;
  Window window;
  Layer layer;
  /// Channels of the output for each one of the input.
  int32_t multiplier;
};

/// What a window covers of an image and of the weights, in one row of `points`.
struct Taps {
  const int8_t *image, *weight;
  int32_t lines, image_line, weight_line, points, image_point, weight_point;
};

#if defined(ETX_CORTEX_M_MVE)

/// The sums of channels 0, 2, 4, 6 and 1, 3, 5, 7.
inline void finish_halves(const Layer& l, int32x4_t even, int32x4_t odd, int32_t channel,
                          int8_t* out) {
  const int32x4x2_t multipliers = vld2q_s32(l.multipliers + channel);
  const int32x4x2_t shifts = vld2q_s32(l.shifts + channel);
  even = vaddq_n_s32(requantize<false>(even, multipliers.val[0], shifts.val[0]), l.epilogue.offset);
  odd = vaddq_n_s32(requantize<false>(odd, multipliers.val[1], shifts.val[1]), l.epilogue.offset);
  int16x8_t both = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
  both = vmaxq_s16(both, vdupq_n_s16(static_cast<int16_t>(l.epilogue.low)));
  both = vminq_s16(both, vdupq_n_s16(static_cast<int16_t>(l.epilogue.high)));
  vstrbq_s16(out + channel, both);
}

/// Eight channels, whose shifts are not above 0.
void finish_eight(const Layer& l, const Taps& t, int32_t channel, int8_t* out) {
  int32x4x2_t sums = {{vdupq_n_s32(0), vdupq_n_s32(0)}};
  if (l.bias != nullptr) sums = vld2q_s32(l.bias + channel);
  int32x4_t even = sums.val[0], odd = sums.val[1];
  const int8_t *line = t.image + channel, *weight_line = t.weight + channel;
  const int32_t step = t.image_point, weight_step = t.weight_point, points = t.points;
  const int32_t offset = l.input_offset;
  if (points == 0) return finish_halves(l, even, odd, channel, out);
  for (int32_t i = t.lines; i > 0; --i, line += t.image_line, weight_line += t.weight_line) {
    const int8_t *at = line, *weight = weight_line;
    asm volatile(
        "dls lr, %[points]\n"
        "1: vldrb.s16 q0, [%[at]]\n"
        "vldrb.s16 q1, [%[weight]]\n"
        "vadd.i16 q0, q0, %[offset]\n"
        "add %[at], %[at], %[step]\n"
        "vmullb.s16 q2, q0, q1\n"
        "vmullt.s16 q0, q0, q1\n"
        "add %[weight], %[weight], %[weight_step]\n"
        "vadd.i32 %q[even], %q[even], q2\n"
        "vadd.i32 %q[odd], %q[odd], q0\n"
        "le lr, 1b\n"
        : [at] "+l"(at), [weight] "+l"(weight), [even] "+w"(even), [odd] "+w"(odd)
        :
        [points] "r"(points), [offset] "r"(offset), [step] "r"(step), [weight_step] "r"(weight_step)
        : "lr", "q0", "q1", "q2", "cc", "memory");
  }
  finish_halves(l, even, odd, channel, out);
}

#elif defined(ETX_CORTEX_M_DSP)

void finish_four(const Layer& l, const Taps& t, int32_t channel, int8_t* out) {
  int32_t a = l.start(channel), b = l.start(channel + 1);
  int32_t c = l.start(channel + 2), d = l.start(channel + 3);
  const int16x2_t offsets = static_cast<int16x2_t>((l.input_offset & 0xffff) * 0x10001);
  const int8_t *line = t.image + channel, *weight_line = t.weight + channel;
  const int32_t step = t.image_point, weight_step = t.weight_point;
  for (int32_t i = t.lines; i > 0; --i, line += t.image_line, weight_line += t.weight_line) {
    const int8_t *at = line, *weight = weight_line;
    for (int32_t j = t.points; j > 0; --j, at += step, weight += weight_step) {
      const uint32_t x = load_word(at), w = load_word(weight);
      const int16x2_t x_even = even_bytes(x, offsets), x_odd = odd_bytes(x, offsets);
      const int16x2_t w_even = even_bytes(w), w_odd = odd_bytes(w);
      a = __smlabb(x_even, w_even, a);
      b = __smlabb(x_odd, w_odd, b);
      c = __smlatt(x_even, w_even, c);
      d = __smlatt(x_odd, w_odd, d);
    }
  }
  out += channel;
  out[0] = l.finish(a, channel);
  out[1] = l.finish(b, channel + 1);
  out[2] = l.finish(c, channel + 2);
  out[3] = l.finish(d, channel + 3);
}

#endif

void finish_one(const Layer& l, const Taps& t, int32_t from, int32_t channel, int8_t* out) {
  int32_t sum = l.start(channel);
  for (int32_t i = 0; i < t.lines; ++i) {
    const int8_t* at = t.image + from + i * t.image_line;
    const int8_t* weight = t.weight + channel + i * t.weight_line;
    for (int32_t j = t.points; j > 0; --j, at += t.image_point, weight += t.weight_point) {
      sum = wrapping_add(sum, (*at + l.input_offset) * *weight);
    }
  }
  out[channel] = l.finish(sum, channel);
}

/// A point of the output, which has as many channels as the input. `grows`: a shift is above 0.
void finish_each(const Layer& l, const Taps& t, int32_t channels, [[maybe_unused]] bool grows,
                 int8_t* out) {
  int32_t c = 0;
#if defined(ETX_CORTEX_M_MVE)
  for (; !grows && c + 8 <= channels; c += 8) finish_eight(l, t, c, out);
#elif defined(ETX_CORTEX_M_DSP)
  for (; c + 4 <= channels; c += 4) finish_four(l, t, c, out);
#endif
  for (; c < channels; ++c) finish_one(l, t, c, c, out);
}

void run(const Depthwise& d, const int8_t* input, int8_t* out) {
  const Window& w = d.window;
  const int32_t size = d.in.height * d.in.width * d.in.channels, channels = d.out.channels;
  const bool grows = has_growth(d.layer.shifts, channels);
  Taps taps{};
  taps.image_line = w.dilation[0] * d.in.width * d.in.channels;
  taps.weight_line = w.kernel[1] * channels;
  taps.image_point = w.dilation[1] * d.in.channels;
  taps.weight_point = channels;
  for (int32_t n = 0; n < d.out.count; ++n, input += size) {
    for (int32_t oy = 0; oy < d.out.height; ++oy) {
      const Reach y(w, 0, oy, d.in.height);
      taps.lines = y.count();
      for (int32_t ox = 0; ox < d.out.width; ++ox, out += channels) {
        const Reach x(w, 1, ox, d.in.width);
        taps.points = x.count();
        taps.image = input + (y.first * d.in.width + x.first) * d.in.channels;
        taps.weight = d.layer.weight + (y.begin * w.kernel[1] + x.begin) * channels;
        if (d.multiplier == 1) {
          finish_each(d.layer, taps, channels, grows, out);
          continue;
        }
        for (int32_t i = 0, c = 0; i < d.in.channels; ++i) {
          for (const int32_t end = c + d.multiplier; c < end; ++c) {
            finish_one(d.layer, taps, i, c, out);
          }
        }
      }
    }
  }
}

template <Order order>
Error depthwise_out(Context& context, const Tensor& input, const Tensor& weight,
                    const std::optional<Tensor>& bias, IntList stride, IntList padding,
                    IntList dilation, int64_t depth_multiplier, int64_t input_offset,
                    int64_t output_offset, const Tensor& multipliers, const Tensor& shifts,
                    int64_t low, int64_t high, const Tensor&, Tensor& out) {
  Depthwise d{};
  ETX_TRY(read_image(context, input, order, d.in));
  ETX_CHECK(context,
            weight.dim() == 4 && weight.size(0) == 1 && depth_multiplier > 0 &&
                weight.size(3) <= INT32_MAX && d.in.channels > 0 &&
                static_cast<int32_t>(weight.size(3)) % d.in.channels == 0 &&
                static_cast<int32_t>(weight.size(3)) / d.in.channels == depth_multiplier,
            InvalidArgument, "weight must be (1, height, width, inputs * depth_multiplier)");
  const int64_t kernel[2] = {weight.size(1), weight.size(2)};
  ETX_TRY(read_window(context, IntList(kernel, 2), stride, padding, dilation, d.window));
  ETX_CHECK(context, kernel[0] * kernel[1] <= kMostProducts, NotSupported,
            "a sum must have at most 43,800 products");
  d.multiplier = static_cast<int32_t>(depth_multiplier);
  d.out = {d.in.count, output_size(d.window, 0, d.in.height, false),
           output_size(d.window, 1, d.in.width, false), static_cast<int32_t>(weight.size(3))};
  ETX_CHECK(context, d.out.height > 0 && d.out.width > 0, InvalidArgument,
            "the window must fit into the padded input");
  ETX_TRY(read_epilogue(context, input_offset, output_offset, low, high, d.layer));
  ETX_TRY(read_constants(context, weight, bias, multipliers, shifts, d.out.channels, d.layer));
  ETX_TRY(resize_image(context, d.out, order, out));
  run(d, input.const_data_ptr<int8_t>(), out.mutable_data_ptr<int8_t>());
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_depthwise_conv2d.out", depthwise_out<Order::Nchw>),
    ETX_CORTEX_M_KERNEL("cortex_m::quantized_depthwise_conv2d_nhwc.out",
                        depthwise_out<Order::Nhwc>),
};

}  // namespace

ETX_KERNEL_TABLE(depthwise_conv2d_kernels, kRows);

}  // namespace etx::cortex_m
