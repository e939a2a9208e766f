# SPDX-License-Identifier: BSD-3-Clause
"""The operators of namespace ``cortex_m`` that `lower` makes: what each computes, in torch.

Images are (N, H, W, C), and those of `BY_DIM_ORDER` (N, C, H, W) with channels last in memory.
Schemas are ExecuTorch's; where its own are registered, those are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from etx_backend_arm.cortex_m.fixed_point import LEFT_SHIFT, finish, requantize

NAMESPACE = "cortex_m"
_LIBRARY: Any = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
_RANGE = "float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype"
_WINDOW = "int[] stride, int[] padding, int[] dilation"
_OUTPUT = (
    "int input_offset, int output_offset, Tensor requantize_multipliers, Tensor requantize_shifts,"
    " int activation_min, int activation_max, Tensor scratch"
)


def _define(
    name: str, arguments: str, function: Callable[..., Tensor], shape: Callable[..., Tensor]
) -> Any:
    packet = getattr(torch.ops, NAMESPACE)
    if not hasattr(packet, name):
        _LIBRARY.define(f"{name}({arguments}) -> Tensor")
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        _LIBRARY.impl(name, shape, "Meta")
    return getattr(packet, name).default


def _quantize(
    input: Tensor, scale: float, zero_point: int, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    return (torch.round(input * (1.0 / scale)) + zero_point).clamp(low, high).to(dtype)


def _dequantize(
    input: Tensor, scale: float, zero_point: int, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    return (input.int() - zero_point).float() * torch.tensor(scale, dtype=torch.float32)


def _convolve(
    image: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """Return exact sums (N, H, W, O) of a weight (O, C / groups, kh, kw)."""
    given = image.permute(0, 3, 1, 2).double()
    start = None if bias is None else bias.double()
    sums = functional.conv2d(
        given, weight.double(), start, list(stride), list(padding), list(dilation), groups
    )
    return sums.permute(0, 2, 3, 1).contiguous()


def _conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], input_offset: int, output_offset: int,
    multipliers: Tensor, shifts: Tensor, low: int, high: int, scratch: Tensor,
) -> Tensor:  # fmt: skip
    groups = input.shape[3] // weight.shape[3]
    kernel = weight.permute(0, 3, 1, 2)
    image = input.int() + input_offset
    sums = _convolve(image, kernel, bias, stride, padding, dilation, groups)
    return finish(sums, (multipliers, shifts), output_offset, (low, high))


def _depthwise_conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], depth_multiplier: int, input_offset: int,
    output_offset: int, multipliers: Tensor, shifts: Tensor, low: int, high: int, scratch: Tensor,
) -> Tensor:  # fmt: skip
    kernel = weight.permute(3, 0, 1, 2)
    image = input.int() + input_offset
    sums = _convolve(image, kernel, bias, stride, padding, dilation, input.shape[3])
    return finish(sums, (multipliers, shifts), output_offset, (low, high))


def _linear(
    input: Tensor, weights: Tensor, bias: Tensor | None, kernel_sum: Tensor | None,
    input_offset: int, filter_offset: int, output_offset: int, multipliers: Sequence[int],
    shifts: Sequence[int], high: int, low: int,
) -> Tensor:  # fmt: skip
    start, offset = (bias, input_offset) if kernel_sum is None else (kernel_sum, 0)
    sums = (input.double() + offset) @ (weights.double() + filter_offset).T
    if start is not None:
        sums = sums + start
    return finish(sums, (list(multipliers), list(shifts)), output_offset, (low, high))


def _add(
    self: Tensor, self_zero_point: int, self_multiplier: int, self_shift: int, other: Tensor,
    other_zero_point: int, other_multiplier: int, other_shift: int, output_zero_point: int,
    output_multiplier: int, output_shift: int, low: int, high: int,
) -> Tensor:  # fmt: skip
    def scaled(x: Tensor, zero_point: int, multiplier: int, shift: int) -> Tensor:
        moved = (x.long() - zero_point) << LEFT_SHIFT
        return requantize(moved, torch.tensor(multiplier), torch.tensor(shift))

    value = scaled(self, self_zero_point, self_multiplier, self_shift)
    value = value + scaled(other, other_zero_point, other_multiplier, other_shift)
    return finish(value, (output_multiplier, output_shift), output_zero_point, (low, high))


def _activation(input: Tensor, lut: Tensor) -> Tensor:
    return lut[input.long() + 128]


def _max_pool2d(
    input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool, input_zero_point: int, output_zero_point: int,
    low: int, high: int,
) -> Tensor:  # fmt: skip
    image = input.permute(0, 3, 1, 2).float()
    pooled = functional.max_pool2d(
        image, list(kernel_size), list(stride), list(padding), list(dilation), ceil_mode
    )
    return pooled.clamp(low, high).permute(0, 2, 3, 1).to(torch.int8).contiguous()


def _avg_pool2d(
    input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    ceil_mode: bool, zero_point: int, multiplier: int, shift: int, scratch: Tensor,
) -> Tensor:  # fmt: skip
    scale = torch.tensor(float(multiplier)) * 2.0 ** (shift - 31)
    image = (input.permute(0, 3, 1, 2).contiguous().float() - zero_point) * scale
    means = functional.avg_pool2d(
        image, list(kernel_size), list(stride), list(padding), ceil_mode, False
    )
    result = torch.round(means / scale) + zero_point
    return result.clamp(-128, 127).permute(0, 2, 3, 1).to(torch.int8).contiguous()


def _mul(
    self: Tensor, self_zero_point: int, other: Tensor, other_zero_point: int,
    output_zero_point: int, multiplier: int, shift: int,
) -> Tensor:  # fmt: skip
    product = (self.long() - self_zero_point) * (other.long() - other_zero_point)
    return finish(product, (multiplier, shift), output_zero_point, (-128, 127))


def _div(
    self: Tensor, self_zero_point: int, other: Tensor, other_zero_point: int,
    output_zero_point: int, output_scale: float,
) -> Tensor:  # fmt: skip
    divisor = (other.int() - other_zero_point).float()
    quotient = (self.int() - self_zero_point).float() / divisor
    scale = torch.tensor(output_scale, dtype=torch.float32)
    value = torch.where(divisor == 0, 0, torch.round(quotient * scale)) + output_zero_point
    return value.clamp(-128, 127).to(torch.int8)


def _softmax(
    input: Tensor, dim: int, input_zero_point: int, output_zero_point: int, multiplier: int,
    shift: int, diff_min: int,
) -> Tensor:  # fmt: skip
    scale = torch.tensor(multiplier * 2.0 ** (shift - 57), dtype=torch.float32)
    shares = torch.softmax((input.int() - input_zero_point).float() * scale, dim)
    return (torch.round(shares * 256) + output_zero_point).clamp(-128, 127).to(torch.int8)


def _transpose(input: Tensor, perm: Sequence[int]) -> Tensor:
    return input.permute(list(perm)).contiguous()


def _batch_matmul(
    lhs: Tensor, lhs_zero_point: int, rhs_transposed: Tensor, rhs_zero_point: int,
    output_zero_point: int, multiplier: int, shift: int, scratch: Tensor,
) -> Tensor:  # fmt: skip
    columns = rhs_transposed.double().mT + rhs_zero_point
    sums = torch.matmul(lhs.double() + lhs_zero_point, columns)
    return finish(sums, (multiplier, shift), output_zero_point, (-128, 127))


def _transpose_conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], output_padding: Sequence[int], dilation: Sequence[int],
    input_offset: int, output_offset: int, multipliers: Tensor, shifts: Tensor, low: int,
    high: int, scratch: Tensor, output_scratch: Tensor,
) -> Tensor:  # fmt: skip
    image = input.permute(0, 3, 1, 2).double() + input_offset
    kernel = weight.permute(3, 0, 1, 2).double()
    window = (list(stride), list(padding), list(output_padding), 1, list(dilation))
    start = None if bias is None else bias.double()
    sums = functional.conv_transpose2d(image, kernel, start, *window).permute(0, 2, 3, 1)
    return finish(sums.contiguous(), (multipliers, shifts), output_offset, (low, high))


def _pad(input: Tensor, before: Sequence[int], after: Sequence[int], value: int) -> Tensor:
    sides = list(zip(before, after, strict=True))
    sizes = input.shape
    is_last = not input.is_contiguous() and input.is_contiguous(memory_format=torch.channels_last)
    if len(sizes) == 4 and (is_last or sizes[1] == 1 or sizes[2] == sizes[3] == 1):
        images, height, width, channels = sides
        sides = [images, channels, height, width]
    pairs = [n for pair in reversed(sides[4 - len(sizes) :]) for n in pair]
    result = functional.pad(input, pairs, value=value)
    return result.contiguous(memory_format=torch.channels_last) if is_last else result


def _broadcast(*args: Any) -> Tensor:
    a, b = (arg for arg in args if isinstance(arg, Tensor))
    return a + b


def _like(input: Tensor, *_: object) -> Tensor:
    return torch.empty_like(input)


QUANTIZE = _define("quantize_per_tensor", f"Tensor input, {_RANGE}", _quantize, _quantize)
DEQUANTIZE = _define("dequantize_per_tensor", f"Tensor input, {_RANGE}", _dequantize, _dequantize)
_LAYER = f"Tensor input, Tensor weight, Tensor? bias, {_WINDOW}"
CONV2D = _define("quantized_conv2d_nhwc", f"{_LAYER}, {_OUTPUT}", _conv2d, _conv2d)
DEPTHWISE_CONV2D = _define(
    "quantized_depthwise_conv2d_nhwc",
    f"{_LAYER}, int depth_multiplier, {_OUTPUT}",
    _depthwise_conv2d,
    _depthwise_conv2d,
)
LINEAR = _define(
    "quantized_linear",
    "Tensor input, Tensor weights, Tensor? bias, Tensor? kernel_sum, int input_offset,"
    " int filter_offset, int output_offset, int[] requantize_multipliers,"
    " int[] requantize_shifts, int activation_max, int activation_min",
    _linear,
    _linear,
)
ADD = _define(
    "quantized_add",
    "Tensor self, int self_zero_point, int self_multiplier, int self_shift, Tensor other,"
    " int other_zero_point, int other_multiplier, int other_shift, int output_zero_point,"
    " int output_multiplier, int output_shift, int activation_min, int activation_max",
    _add,
    _broadcast,
)
ACTIVATION = _define(
    "quantized_activation",
    "Tensor input, Tensor lut",
    _activation,
    _like,
)
_POOL = "Tensor input, int[] kernel_size, int[] stride, int[] padding"
MAX_POOL2D = _define(
    "quantized_max_pool2d_nhwc",
    f"{_POOL}, int[] dilation, bool ceil_mode, int input_zero_point, int output_zero_point,"
    " int activation_min, int activation_max",
    _max_pool2d,
    _max_pool2d,
)
AVG_POOL2D = _define(
    "quantized_avg_pool2d_nhwc",
    f"{_POOL}, bool ceil_mode, int zero_point, int multiplier, int shift, Tensor scratch",
    _avg_pool2d,
    _avg_pool2d,
)
MUL = _define(
    "quantized_mul",
    "Tensor self, int self_zero_point, Tensor other, int other_zero_point, int output_zero_point,"
    " int output_multiplier, int output_shift",
    _mul,
    _broadcast,
)
DIV = _define(
    "quantized_div",
    "Tensor self, int self_zero_point, Tensor other, int other_zero_point, int output_zero_point,"
    " float output_scale",
    _div,
    _broadcast,
)
MINIMUM = _define("minimum", "Tensor self, Tensor other", torch.minimum, _broadcast)
MAXIMUM = _define("maximum", "Tensor self, Tensor other", torch.maximum, _broadcast)
SOFTMAX = _define(
    "softmax",
    "Tensor input, int dim, int input_zero_point, int output_zero_point, int input_multiplier,"
    " int input_shift, int diff_min",
    _softmax,
    _like,
)
PAD = _define("pad", "Tensor input, int[] pre_pad, int[] post_pad, int pad_value", _pad, _pad)
TRANSPOSE = _define("transpose", "Tensor input, int[] perm", _transpose, _transpose)
BATCH_MATMUL = _define(
    "quantized_batch_matmul",
    "Tensor lhs, int lhs_zero_point, Tensor rhs_transposed, int rhs_zero_point,"
    " int output_zero_point, int output_multiplier, int output_shift, Tensor scratch",
    _batch_matmul,
    _batch_matmul,
)
TRANSPOSE_CONV2D = _define(
    "quantized_transpose_conv2d_nhwc",
    "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding,"
    f" int[] dilation, {_OUTPUT}, Tensor output_scratch",
    _transpose_conv2d,
    _transpose_conv2d,
)


def _by_dim_order(target: Any) -> Any:
    """Define the operator of the other family: the same, of images whose sizes are (N, C, H, W)."""

    def compute(input: Tensor, *rest: Any) -> Tensor:
        result: Tensor = target(input.permute(0, 2, 3, 1).contiguous(), *rest)
        return result.permute(0, 3, 1, 2)

    name, _, arguments = str(target._schema).partition("::")[2].partition("(")
    arguments = arguments.rpartition(") ->")[0]
    return _define(name.removesuffix("_nhwc"), arguments, compute, compute)


BY_DIM_ORDER = {
    target: _by_dim_order(target)
    for target in (CONV2D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D, AVG_POOL2D, MAX_POOL2D)
}
