// SPDX-License-Identifier: BSD-3-Clause
#include <etx/kernel.h>

#include "core/dispatch.h"
#include "core/operand.h"
#include "core/shape.h"
#include "ops/conv/conv_reach.h"
#include "ops/conv/conv_shape.h"

namespace etx::portable {
namespace {

/// Calls `f(coarse, fine)` with the offsets of each pair of elements that `tap` connects.
template <class F>
void for_each_pair(const ConvShape& s, int64_t tap, const F& f) {
  const int64_t* const coarse = s.transposed ? s.in : s.out;
  const int64_t* const fine = s.transposed ? s.out : s.in;
  const auto [z, y, x] = TapReach(s, tap);
  for (int64_t cz = z.begin; cz < z.end; ++cz) {
    for (int64_t cy = y.begin; cy < y.end; ++cy) {
      const int64_t from = (cz * coarse[1] + cy) * coarse[2];
      const int64_t to = (z.fine(cz) * fine[1] + y.fine(cy)) * fine[2];
      for (int64_t cx = x.begin; cx < x.end; ++cx) f(from + cx, to + x.fine(cx));
    }
  }
}

/// Operands and results; a null result is not asked for.
template <typename T>
struct Gradients {
  const ConvShape& s;
  const T *output, *input, *weight;
  T *to_input, *to_weight, *to_bias;

  int64_t in_channels() const { return s.groups * s.in_channels; }
  int64_t out_channels() const { return s.groups * s.out_channels; }
  int64_t weights() const { return in_channels() * s.out_channels * s.taps(); }

  void add_bias() const {
    for (int64_t c = 0; c < out_channels(); ++c) {
      T sum = T{0};
      for (int64_t n = 0; n < s.batch; ++n) {
        const T* const plane = output + (n * out_channels() + c) * s.out_size();
        for (int64_t i = 0; i < s.out_size(); ++i) sum += plane[i];
      }
      to_bias[c] = sum;
    }
  }

  /// Calls `f` with the begin of each pair of planes that a part of the weight connects, and of
  /// that part.
  template <class F>
  void for_each_plane(const F& f) const {
    const int64_t pairs = s.in_channels * s.out_channels;
    for (int64_t i = 0; i < s.batch * s.groups * pairs; ++i) {
      const int64_t n = i / pairs / s.groups, group = i / pairs % s.groups;
      const int64_t ic = i % pairs / s.out_channels, oc = i % s.out_channels;
      const int64_t in_channel = group * s.in_channels + ic;
      const int64_t out_channel = group * s.out_channels + oc;
      const int64_t part =
          s.transposed ? in_channel * s.out_channels + oc : out_channel * s.in_channels + ic;
      f((n * in_channels() + in_channel) * s.in_size(),
        (n * out_channels() + out_channel) * s.out_size(), part * s.taps());
    }
  }

  void add_input() const {
    for (int64_t i = 0; i < s.batch * in_channels() * s.in_size(); ++i) to_input[i] = T{0};
    for_each_plane([&](int64_t in, int64_t out, int64_t part) {
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        const T factor = weight[part + tap];
        for_each_pair(s, tap, [&](int64_t coarse, int64_t fine) {
          const T gradient = output[out + (s.transposed ? fine : coarse)];
          to_input[in + (s.transposed ? coarse : fine)] += factor * gradient;
        });
      }
    });
  }

  void add_weight() const {
    for (int64_t i = 0; i < weights(); ++i) to_weight[i] = T{0};
    for_each_plane([&](int64_t in, int64_t out, int64_t part) {
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        T sum = T{0};
        for_each_pair(s, tap, [&](int64_t coarse, int64_t fine) {
          const T gradient = output[out + (s.transposed ? fine : coarse)];
          sum += input[in + (s.transposed ? coarse : fine)] * gradient;
        });
        to_weight[part + tap] += sum;
      }
    });
  }

  void run() const {
    if (to_input != nullptr) add_input();
    if (to_weight != nullptr) add_weight();
    if (to_bias != nullptr) add_bias();
  }
};

/// `out` gets the sizes of `like` and memory for a result, unless it is not asked for.
Error prepare(Context& context, bool asked, const Tensor& out, const Shape& like, ScalarType dtype,
              ResultOperand& result) {
  if (!asked) return Error::Ok;
  ETX_CHECK(context, out.scalar_type() == dtype, InvalidArgument,
            "the outputs must have the dtype of input");
  ETX_TRY(resize_out(context, out, like));
  return result.prepare(context, out, wide(dtype));
}

Error convolution_backward_out(Context& context, const Tensor& grad_output, const Tensor& input,
                               const Tensor& weight, std::optional<IntList> /*bias_sizes*/,
                               IntList stride, IntList padding, IntList dilation, bool transposed,
                               IntList output_padding, int64_t groups, BoolList output_mask,
                               Tensor& out0, Tensor& out1, Tensor& out2) {
  ConvShape shape;
  ETX_TRY(read_conv_shape(context, input, weight, std::nullopt, stride, padding, dilation,
                          transposed, output_padding, groups, shape));
  const ScalarType dtype = input.scalar_type(), type = wide(dtype);
  ETX_CHECK(context, output_mask.size() == 3, InvalidArgument, "output_mask must have three items");
  ETX_CHECK(context, weight.scalar_type() == dtype && grad_output.scalar_type() == dtype,
            InvalidArgument, "grad_output, input and weight must have the same dtype");
  ETX_CHECK(context, Floating::contains(dtype), NotSupported,
            "convolution_backward takes floating dtypes");
  ETX_CHECK(context, grad_output.dim() == input.dim(), InvalidArgument,
            "grad_output must have the shape of the convolution's output");
  const int64_t outputs = shape.groups * shape.out_channels;
  const Checked pairs =
      Checked(shape.batch) * shape.groups * shape.in_channels * shape.out_channels;
  ETX_CHECK(context, pairs.is_within(0, INT64_MAX), InvalidArgument,
            "batch, groups and channels must not be more than int64 counts");
  bool fits = grad_output.size(0) == shape.batch && grad_output.size(1) == outputs;
  for (ssize_t d = 2; d < input.dim(); ++d) {
    fits &= grad_output.size(d) == shape.out[ConvShape::kAxes - input.dim() + d];
  }
  ETX_CHECK(context, fits, InvalidArgument,
            "grad_output must have the shape of the convolution's output");
  Shape channels;
  channels.push(outputs);
  ResultOperand results[3];
  ETX_TRY(prepare(context, output_mask[0], out0, Shape(input), dtype, results[0]));
  ETX_TRY(prepare(context, output_mask[1], out1, Shape(weight), dtype, results[1]));
  ETX_TRY(prepare(context, output_mask[2], out2, channels, dtype, results[2]));
  const Error computed = dispatch<is_computed>(ComputedFloating{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *gradient, *x, *w;
    ETX_TRY(read_operand(context, grad_output, type, gradient));
    ETX_TRY(read_operand(context, input, type, x));
    ETX_TRY(read_operand(context, weight, type, w));
    const auto result = [&](size_t i) { return output_mask[i] ? results[i].data<T>() : nullptr; };
    Gradients<T>{shape, gradient, x, w, result(0), result(1), result(2)}.run();
    return Error::Ok;
  });
  ETX_TRY(computed);
  const Tensor* const outs[] = {&out0, &out1, &out2};
  for (size_t i = 0; i < 3; ++i) {
    if (output_mask[i]) ETX_TRY(results[i].finish(context, *outs[i]));
  }
  return Error::Ok;
}

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::convolution_backward.out", convolution_backward_out, Floating::bits),
};

}  // namespace

ETX_KERNEL_TABLE(conv_backward_kernels, kRows);

}  // namespace etx::portable
