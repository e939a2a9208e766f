# SPDX-License-Identifier: BSD-3-Clause
"""The integer operators of namespace ``etx``: what each computes, in torch.

Activations are int8, contiguous, images with their channels last: (N, H, W, C). Weights are
symmetric int8 or int4, packed as `packed_weights` says. A sum of products is exact in int32;
``requantize`` is the one rule by which it becomes int8 again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from etx_exir.ir import integer_shapes as shape_of
from etx_exir.ir.own_ops import define
from etx_exir.ir.packed_weights import unpack, unpack_groups, unpack_int4

__all__ = [
    "ADD",
    "AVG_POOL",
    "CONV",
    "DEPTHWISE_CONV",
    "DYNAMIC_CONV",
    "DYNAMIC_LINEAR",
    "DYNAMIC_LINEAR_INT4",
    "INTERPOLATE",
    "LINEAR",
    "LOOKUP",
    "MAX_POOL",
    "MEAN",
    "MUL",
    "NAMESPACE",
    "ONE",
    "OPERATORS",
    "WEIGHT_ONLY_LINEAR",
    "WEIGHT_ONLY_LINEAR_INT4",
    "requantize",
]

NAMESPACE = "etx"
_LAYER = "Tensor input, Tensor weight, Tensor weight_sums, Tensor? bias, Tensor scale"
_OUTPUT = "int output_zero_point, int output_min, int output_max"
_WINDOW = "int[] kernel_size, int[] stride, int[] padding"
_LIMITS = "float output_min, float output_max"
_GROUPS = "int group_size, int out_features"
ONE = 2048
"""Of so many parts are the weights of `INTERPOLATE`."""
EPS = torch.finfo(torch.float32).eps


def _define(
    name: str,
    arguments: str,
    function: Callable[..., Tensor],
    shape: Callable[..., Tensor],
    tags: Sequence[Any] = (),
) -> Any:
    return define(f"{name}({arguments}) -> Tensor", function, shape, tags)


def requantize(value: Tensor, zero_point: int, low: int, high: int) -> Tensor:
    """Round a float32 `value` to the nearest integer, halves to even, and bound it to int8."""
    return (torch.round(value) + zero_point).clamp(low, high).to(torch.int8)


def _accumulate(rows: Tensor, zero_point: int, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Sum (rows - zero_point) w + bias, exactly: float64 holds any int32."""
    sums = (rows.double() - zero_point) @ weight.double().T
    return sums if bias is None else sums + bias


def _linear(
    input: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    matrix = unpack(weight, scale.shape[0], input.shape[-1])
    sums = _accumulate(input, input_zero_point, matrix, bias)
    return requantize(sums.float() * scale, output_zero_point, output_min, output_max)


def _spaced(image: Tensor, spacing: Sequence[int]) -> Tensor:
    """Put zeros between neighbours of (N, H, W, C): `spacing` - 1 of them in each direction."""
    batch, height, width, channels = image.shape
    down, right = spacing
    if down == right == 1:
        return image
    wide = image.new_zeros(batch, height, down, width, right, channels)
    wide[:, :, 0, :, 0] = image
    spaced = wide.view(batch, height * down, width * right, channels)
    return spaced[:, : (height - 1) * down + 1, : (width - 1) * right + 1]


def _convolve(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve an image (N, H, W, C) in float64 with a weight (O, C / groups, kh, kw)."""
    top, left, bottom, right = padding
    padded = functional.pad(image, (0, 0, left, right, top, bottom))
    sums = functional.conv2d(
        padded.permute(0, 3, 1, 2),
        weight.double(),
        None if bias is None else bias.double(),
        list(stride),
        0,
        list(dilation),
        groups,
    )
    return sums.permute(0, 2, 3, 1).contiguous()


def _windows(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    channels: int,
    window: tuple[Sequence[int], ...],
    groups: int,
) -> Tensor:
    """Convolve an image (N, H, W, C) in float64 with a packed weight.

    Of fewer blocks than groups each is a wider group, with zeros between those that it holds.
    """
    kernel_size, stride, padding, dilation, spacing = window
    groups = min(groups, weight.shape[0])
    rows, depth = channels // groups, image.shape[-1] // groups
    taps = math.prod(kernel_size)
    parts = [unpack(part, rows, taps * depth) for part in weight.chunk(groups)]
    kernel = torch.cat(parts).view(-1, *kernel_size, depth).permute(0, 3, 1, 2)
    return _convolve(_spaced(image, spacing), kernel, bias, stride, padding, dilation, groups)


def _conv(
    input: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    spacing: Sequence[int],
    groups: int,
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    window = (kernel_size, stride, padding, dilation, spacing)
    sums = _windows(input.double() - input_zero_point, weight, bias, scale.shape[0], window, groups)
    return requantize(sums.float() * scale, output_zero_point, output_min, output_max)


def _depthwise_conv(
    input: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    bias: Tensor | None,
    scale: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    channels = input.shape[-1]
    kernel = weight.view(*kernel_size, channels, 1).permute(2, 3, 0, 1)
    image = input.double() - input_zero_point
    sums = _convolve(image, kernel, bias, stride, padding, dilation, channels)
    return requantize(sums.float() * scale, output_zero_point, output_min, output_max)


def _add(
    a: Tensor,
    b: Tensor,
    a_scale: float,
    a_zero_point: int,
    b_scale: float,
    b_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    value = (a.float() - a_zero_point) * a_scale + (b.float() - b_zero_point) * b_scale
    return requantize(value, output_zero_point, output_min, output_max)


def _mul(
    a: Tensor,
    b: Tensor,
    scale: float,
    a_zero_point: int,
    b_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    value = (a.float() - a_zero_point) * (b.float() - b_zero_point) * scale
    return requantize(value, output_zero_point, output_min, output_max)


def _avg_pool(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    count_include_pad: bool,
    scale: float,
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    top, left, bottom, right = padding
    spread = (0, 0, left, right, top, bottom)
    image = functional.pad(input.double() - input_zero_point, spread)
    ones = functional.pad(
        torch.ones_like(input, dtype=torch.float64), spread, value=float(count_include_pad)
    )

    def sums(x: Tensor) -> Tensor:
        pooled = functional.avg_pool2d(
            x.permute(0, 3, 1, 2), list(kernel_size), list(stride), divisor_override=1
        )
        return pooled.permute(0, 2, 3, 1).contiguous()

    factor = torch.full((), scale, dtype=torch.float32) / sums(ones).float()
    return requantize(sums(image).float() * factor, output_zero_point, output_min, output_max)


def _mean(
    input: Tensor,
    dim: Sequence[int],
    keepdim: bool,
    scale: float,
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    sums = (input.long() - input_zero_point).sum(list(dim), keepdim)
    count = math.prod(input.shape[d] for d in dim)
    factor = torch.full((), scale, dtype=torch.float32) / count
    return requantize(sums.float() * factor, output_zero_point, output_min, output_max)


def _between(x: Tensor, points: Tensor, dim: int) -> Tensor:
    """Return sums of two neighbours along `dim`; `points` (n, 2): the first, parts of the next."""
    first, weight = points.long().unbind(1)
    shape = [-1 if d == dim else 1 for d in range(x.dim())]
    weights = weight.view(shape)
    after = x.index_select(dim, (first + 1).clamp(max=x.shape[dim] - 1))
    return x.index_select(dim, first) * (ONE - weights) + after * weights


def _interpolate(
    input: Tensor,
    rows: Tensor,
    columns: Tensor,
    scale: float,
    input_zero_point: int,
    output_zero_point: int,
    output_min: int,
    output_max: int,
) -> Tensor:
    sums = _between(_between(input.long() - input_zero_point, rows, 1), columns, 2)
    factor = torch.full((), scale / ONE**2, dtype=torch.float32)
    return requantize(sums.float() * factor, output_zero_point, output_min, output_max)


def _max_pool(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    top, left, bottom, right = padding
    image = functional.pad(input.float(), (0, 0, left, right, top, bottom), value=-128.0)
    pooled = functional.max_pool2d(
        image.permute(0, 3, 1, 2), list(kernel_size), list(stride), 0, list(dilation)
    )
    return pooled.permute(0, 2, 3, 1).contiguous().to(torch.int8)


def _lookup(input: Tensor, table: Tensor) -> Tensor:
    return table[input.long() - torch.iinfo(input.dtype).min]


def _quantize_rows(input: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows of a float32 matrix as integers less their zero points, and their scales."""
    low = input.amin(-1, keepdim=True).clamp(max=0)
    high = input.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=EPS)
    zero_point = (-128 - torch.round(low / scale)).clamp(-128, 127)
    return (torch.round(input * (1 / scale)) + zero_point).clamp(-128, 127) - zero_point, scale


def _finish(y: Tensor, bias: Tensor | None, low: float, high: float) -> Tensor:
    return (y if bias is None else y + bias).clamp(low, high)


def _dynamic_linear(
    input: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    weight_scales: Tensor,
    bias: Tensor | None,
    output_min: float,
    output_max: float,
) -> Tensor:
    rows, scale = _quantize_rows(input)
    matrix = unpack(weight, weight_scales.shape[0], input.shape[-1])
    sums = rows.double() @ matrix.double().T
    return _finish(sums.float() * (scale * weight_scales), bias, output_min, output_max)


def _dynamic_conv(
    input: Tensor,
    input_scale: Tensor,
    input_zero_point: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    weight_scales: Tensor,
    bias: Tensor | None,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    spacing: Sequence[int],
    groups: int,
    output_min: float,
    output_max: float,
) -> Tensor:
    window = (kernel_size, stride, padding, dilation, spacing)
    image, channels = input.double() - input_zero_point, weight_scales.shape[0]
    sums = _windows(image, weight, None, channels, window, groups)
    scales = input_scale.float() * weight_scales
    return _finish(sums.float() * scales, bias, output_min, output_max)


def _by_groups(
    rows: Tensor, packed: Tensor, scales: Tensor, group_size: int, channels: int, dtype: torch.dtype
) -> Tensor:
    """Sum over groups of columns: the product of `rows` and int4 weights, times their scales."""
    groups = scales.shape[1]
    matrix = unpack_int4(packed, channels, rows.shape[-1]).to(dtype)
    parts = rows.to(dtype).reshape(*rows.shape[:-1], groups, group_size)
    weights = matrix.reshape(channels, groups, group_size)
    products = torch.einsum("...gk,ngk->...gn", parts, weights)
    return (products.float() * unpack_groups(scales, channels)).sum(-2)


def _dynamic_linear_int4(
    input: Tensor,
    weight: Tensor,
    weight_sums: Tensor,
    weight_scales: Tensor,
    bias: Tensor | None,
    group_size: int,
    out_features: int,
    output_min: float,
    output_max: float,
) -> Tensor:
    rows, scale = _quantize_rows(input)
    sums = _by_groups(rows, weight, weight_scales, group_size, out_features, torch.float64)
    return _finish(sums * scale, bias, output_min, output_max)


def _weight_only_linear(
    input: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    bias: Tensor | None,
    output_min: float,
    output_max: float,
) -> Tensor:
    matrix = unpack(weight, weight_scales.shape[0], input.shape[-1])
    return _finish((input @ matrix.float().T) * weight_scales, bias, output_min, output_max)


def _weight_only_linear_int4(
    input: Tensor,
    weight: Tensor,
    weight_scales: Tensor,
    bias: Tensor | None,
    group_size: int,
    out_features: int,
    output_min: float,
    output_max: float,
) -> Tensor:
    sums = _by_groups(input, weight, weight_scales, group_size, out_features, torch.float32)
    return _finish(sums, bias, output_min, output_max)


POINTWISE = (torch.Tag.pointwise,)
LINEAR = _define(
    "quantized_linear", f"{_LAYER}, int input_zero_point, {_OUTPUT}", _linear, shape_of.linear
)
CONV = _define(
    "quantized_conv",
    f"{_LAYER}, {_WINDOW}, int[] dilation, int[] spacing, int groups, int input_zero_point,"
    f" {_OUTPUT}",
    _conv,
    shape_of.conv,
)
DEPTHWISE_CONV = _define(
    "quantized_depthwise_conv",
    f"{_LAYER}, {_WINDOW}, int[] dilation, int input_zero_point, {_OUTPUT}",
    _depthwise_conv,
    shape_of.depthwise_conv,
)
ADD = _define(
    "quantized_add",
    "Tensor a, Tensor b, float a_scale, int a_zero_point, float b_scale, int b_zero_point,"
    f" {_OUTPUT}",
    _add,
    shape_of.elementwise,
    POINTWISE,
)
MUL = _define(
    "quantized_mul",
    f"Tensor a, Tensor b, float scale, int a_zero_point, int b_zero_point, {_OUTPUT}",
    _mul,
    shape_of.elementwise,
    POINTWISE,
)
AVG_POOL = _define(
    "quantized_avg_pool",
    f"Tensor input, {_WINDOW}, bool count_include_pad, float scale, int input_zero_point,"
    f" {_OUTPUT}",
    _avg_pool,
    shape_of.pool,
)
MEAN = _define(
    "quantized_mean",
    f"Tensor input, int[] dim, bool keepdim, float scale, int input_zero_point, {_OUTPUT}",
    _mean,
    shape_of.mean,
)
INTERPOLATE = _define(
    "quantized_interpolate",
    f"Tensor input, Tensor rows, Tensor columns, float scale, int input_zero_point, {_OUTPUT}",
    _interpolate,
    shape_of.interpolate,
)
MAX_POOL = _define(
    "quantized_max_pool", f"Tensor input, {_WINDOW}, int[] dilation", _max_pool, shape_of.max_pool
)
LOOKUP = _define("lookup", "Tensor input, Tensor table", _lookup, shape_of.lookup)
DYNAMIC_LINEAR = _define(
    "dynamic_linear",
    "Tensor input, Tensor weight, Tensor weight_sums, Tensor weight_scales, Tensor? bias,"
    f" {_LIMITS}",
    _dynamic_linear,
    shape_of.dynamic_linear,
)
DYNAMIC_CONV = _define(
    "dynamic_conv",
    "Tensor input, Tensor input_scale, Tensor input_zero_point, Tensor weight,"
    f" Tensor weight_sums, Tensor weight_scales, Tensor? bias, {_WINDOW}, int[] dilation,"
    f" int[] spacing, int groups, {_LIMITS}",
    _dynamic_conv,
    shape_of.dynamic_conv,
)
DYNAMIC_LINEAR_INT4 = _define(
    "dynamic_linear_int4",
    "Tensor input, Tensor weight, Tensor weight_sums, Tensor weight_scales, Tensor? bias,"
    f" {_GROUPS}, {_LIMITS}",
    _dynamic_linear_int4,
    shape_of.linear_int4,
)
WEIGHT_ONLY_LINEAR = _define(
    "weight_only_linear",
    f"Tensor input, Tensor weight, Tensor weight_scales, Tensor? bias, {_LIMITS}",
    _weight_only_linear,
    shape_of.weight_only_linear,
)
WEIGHT_ONLY_LINEAR_INT4 = _define(
    "weight_only_linear_int4",
    f"Tensor input, Tensor weight, Tensor weight_scales, Tensor? bias, {_GROUPS}, {_LIMITS}",
    _weight_only_linear_int4,
    shape_of.linear_int4,
)
OPERATORS = (
    LINEAR,
    CONV,
    DEPTHWISE_CONV,
    ADD,
    MUL,
    AVG_POOL,
    MEAN,
    INTERPOLATE,
    MAX_POOL,
    LOOKUP,
    DYNAMIC_LINEAR,
    DYNAMIC_CONV,
    DYNAMIC_LINEAR_INT4,
    WEIGHT_ONLY_LINEAR,
    WEIGHT_ONLY_LINEAR_INT4,
)
