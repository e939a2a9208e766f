# SPDX-License-Identifier: BSD-3-Clause
"""The integer operators as torch computes them, from `integer_reference`: registered under their
names and schemas where the compiler, which has them too, is not in the process."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from integer_reference import Geometry, Output, conv, interpolate, linear, quantize_rows, windows
from torch import Tensor
from torch.library import Library

LAYER = "Tensor input, Tensor weight, Tensor weight_sums, Tensor? bias, Tensor scale"
RANGE = "int output_zero_point, int output_min, int output_max"
WINDOW = "int[] kernel_size, int[] stride, int[] padding"
LIMITS = "float output_min, float output_max"
GROUPS = "int group_size, int out_features"
WEIGHT = "Tensor weight, Tensor weight_sums, Tensor weight_scales, Tensor? bias"
ROWS = f"Tensor input, {WEIGHT}"
WEIGHTS = "Tensor input, Tensor weight, Tensor weight_scales, Tensor? bias"


def unpack(packed: Tensor, n: int, k: int) -> Tensor:
    """Return the int8 matrix (n, k) whose packed form is given."""
    blocks = packed.transpose(1, 2)
    return blocks.reshape(packed.shape[0] * packed.shape[2], -1)[:n, :k]


def unpack_int4(packed: Tensor, n: int, k: int) -> Tensor:
    """Return the int4 matrix (n, k) whose packed form is given."""
    return unpack(torch.cat([packed & 15, packed >> 4], -1).to(torch.int8) - 8, n, k)


def quantized_linear(x: Tensor, w: Tensor, sums: Tensor, bias: Any, scale: Tensor, *rest: int):
    matrix = unpack(w, scale.shape[0], x.shape[-1])
    return Output(*rest[1:]).requantize(linear(x, matrix, bias, rest[0]), scale)


def quantized_conv(x: Tensor, w: Tensor, sums: Tensor, bias: Any, scale: Tensor, *rest: Any):
    *lists, groups, zero, point, low, high = rest
    geometry, groups = Geometry(*map(tuple, lists)), min(groups, w.shape[0])
    rows, depth = scale.shape[0] // groups, x.shape[-1] // groups
    parts = [unpack(part, rows, math.prod(geometry.kernel) * depth) for part in w.chunk(groups)]
    weight = torch.cat(parts).reshape(-1, *geometry.kernel, depth)
    result = conv(x, weight, bias, zero, geometry, groups)
    return Output(point, low, high).requantize(result, scale)


def quantized_depthwise_conv(
    x: Tensor, w: Tensor, sums: Tensor, bias: Any, scale: Tensor, *rest: Any
):
    *lists, zero, point, low, high = rest
    geometry = Geometry(*map(tuple, lists))
    weight = w.T.reshape(-1, *geometry.kernel, 1)
    result = conv(x, weight, bias, zero, geometry, x.shape[-1])
    return Output(point, low, high).requantize(result, scale)


def quantized_add(a: Tensor, b: Tensor, p: float, a_zero: int, q: float, b_zero: int, *out: int):
    left, right = (a.float() - a_zero) * torch.tensor(p), (b.float() - b_zero) * torch.tensor(q)
    return Output(*out).round(left + right)


def quantized_mul(a: Tensor, b: Tensor, scale: float, a_zero: int, b_zero: int, *out: int):
    return Output(*out).requantize((a.float() - a_zero) * (b.float() - b_zero), scale)


def quantized_avg_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    count_padding: bool,
    scale: float,
    zero: int,
    *out: int,
):
    geometry = Geometry(*map(tuple, (kernel, stride, padding)))
    sums = windows(x.double() - zero, geometry, 0).sum(-1)
    counts = windows(torch.ones_like(x), geometry, float(count_padding)).sum(-1)
    return Output(*out).round(sums.float() * (torch.tensor(scale) / counts.float()))


def quantized_mean(x: Tensor, dim: Sequence[int], keep: bool, scale: float, zero: int, *out: int):
    sums = (x.long() - zero).sum(list(dim), keep)
    count = math.prod(x.shape[d] for d in dim)
    return Output(*out).round(sums.float() * (torch.tensor(scale) / count))


def quantized_interpolate(
    x: Tensor, rows: Tensor, columns: Tensor, scale: float, zero: int, *out: int
):
    return Output(*out).requantize(interpolate(x, rows, columns, zero), scale / 2048**2)


def quantized_max_pool(x: Tensor, *lists: Sequence[int]):
    return windows(x, Geometry(*map(tuple, lists)), -128).amax(-1).to(torch.int8)


def lookup(x: Tensor, table: Tensor):
    return table[x.long() - torch.iinfo(x.dtype).min]


def finish(y: Tensor, bias: Tensor | None, low: float, high: float) -> Tensor:
    return (y if bias is None else y + bias).clamp(low, high).float()


def by_groups(rows: Tensor, packed: Tensor, scales: Tensor, size: int, n: int) -> Tensor:
    groups = scales.shape[1]
    scales = scales.transpose(0, 1).reshape(groups, -1)[:, :n]
    matrix = unpack_int4(packed, n, rows.shape[-1]).double().reshape(n, groups, size)
    parts = rows.double().reshape(*rows.shape[:-1], groups, size)
    return (torch.einsum("...gk,ngk->...gn", parts, matrix) * scales.double()).sum(-2)


def dynamic_linear(x: Tensor, w: Tensor, sums: Tensor, scales: Tensor, bias: Any, *limits: float):
    rows, scale, zero = quantize_rows(x)
    matrix = unpack(w, scales.shape[0], x.shape[-1]).double()
    return finish((rows - zero).double() @ matrix.T * (scale * scales), bias, *limits)


def dynamic_conv(x: Tensor, scale: Tensor, zero: Tensor, w: Tensor, sums: Tensor, *rest: Any):
    scales, bias, *lists, groups, low, high = rest
    geometry, groups = Geometry(*map(tuple, lists)), min(groups, w.shape[0])
    rows, depth = scales.shape[0] // groups, x.shape[-1] // groups
    parts = [unpack(part, rows, math.prod(geometry.kernel) * depth) for part in w.chunk(groups)]
    weight = torch.cat(parts).reshape(-1, *geometry.kernel, depth)
    result = conv(x, weight, None, int(zero), geometry, groups)
    return finish(result.double() * (scale * scales), bias, low, high)


def dynamic_linear_int4(
    x: Tensor, w: Tensor, sums: Tensor, scales: Tensor, bias: Any, size: int, n: int, *limits: float
):
    rows, scale, zero = quantize_rows(x)
    return finish(by_groups(rows - zero, w, scales, size, n) * scale, bias, *limits)


def weight_only_linear(x: Tensor, w: Tensor, scales: Tensor, bias: Any, *limits: float):
    matrix = unpack(w, scales.shape[0], x.shape[-1]).double()
    return finish(x.double() @ matrix.T * scales, bias, *limits)


def weight_only_linear_int4(
    x: Tensor, w: Tensor, scales: Tensor, bias: Any, size: int, n: int, *limits: float
):
    return finish(by_groups(x, w, scales, size, n), bias, *limits)


OPERATORS: dict[str, tuple[str, Callable[..., Any]]] = {
    "quantized_linear": (f"{LAYER}, int input_zero_point, {RANGE}", quantized_linear),
    "quantized_conv": (
        f"{LAYER}, {WINDOW}, int[] dilation, int[] spacing, int groups, int input_zero_point, "
        f"{RANGE}",
        quantized_conv,
    ),
    "quantized_depthwise_conv": (
        f"{LAYER}, {WINDOW}, int[] dilation, int input_zero_point, {RANGE}",
        quantized_depthwise_conv,
    ),
    "quantized_add": (
        "Tensor a, Tensor b, float a_scale, int a_zero_point, float b_scale, int b_zero_point, "
        f"{RANGE}",
        quantized_add,
    ),
    "quantized_mul": (
        f"Tensor a, Tensor b, float scale, int a_zero_point, int b_zero_point, {RANGE}",
        quantized_mul,
    ),
    "quantized_avg_pool": (
        f"Tensor input, {WINDOW}, bool count_include_pad, float scale, int input_zero_point, "
        f"{RANGE}",
        quantized_avg_pool,
    ),
    "quantized_mean": (
        f"Tensor input, int[] dim, bool keepdim, float scale, int input_zero_point, {RANGE}",
        quantized_mean,
    ),
    "quantized_interpolate": (
        f"Tensor input, Tensor rows, Tensor columns, float scale, int input_zero_point, {RANGE}",
        quantized_interpolate,
    ),
    "quantized_max_pool": (f"Tensor input, {WINDOW}, int[] dilation", quantized_max_pool),
    "lookup": ("Tensor input, Tensor table", lookup),
    "dynamic_linear": (f"{ROWS}, {LIMITS}", dynamic_linear),
    "dynamic_conv": (
        f"Tensor input, Tensor input_scale, Tensor input_zero_point, {WEIGHT}, {WINDOW}, "
        f"int[] dilation, int[] spacing, int groups, {LIMITS}",
        dynamic_conv,
    ),
    "dynamic_linear_int4": (f"{ROWS}, {GROUPS}, {LIMITS}", dynamic_linear_int4),
    "weight_only_linear": (f"{WEIGHTS}, {LIMITS}", weight_only_linear),
    "weight_only_linear_int4": (f"{WEIGHTS}, {GROUPS}, {LIMITS}", weight_only_linear_int4),
}


def define_operators() -> Library:
    """Register what is not there, and names for the kernels, as long as the library lives."""
    library = Library("etx", "FRAGMENT")
    for name, (schema, function) in OPERATORS.items():
        if not hasattr(torch.ops.etx, name):
            library.define(f"{name}({schema}) -> Tensor")
            library.impl(name, function, "CompositeExplicitAutograd")
        library.define(f"{name}.out({schema}, *, Tensor(a!) out) -> Tensor(a!)")
    return library
