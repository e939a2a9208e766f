# SPDX-License-Identifier: BSD-3-Clause
"""Linear layers and convolutions of int8 tensors with constant int8 weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.clamps import Clamped
from etx_exir.integer.fine_bias import as_fractions
from etx_exir.integer.kernel import Convolve, Kernel, convolved, kernel_of
from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import Operand, Scale, Weight, bias_of, operand, weight_of
from etx_exir.ir.constants import Constants
from etx_exir.ir.integer_ops import CONV, DEPTHWISE_CONV, LINEAR
from etx_exir.ir.packed_weights import pack

aten = torch.ops.aten
LIMIT = 2**31
Row = Callable[[Clamped, Constants, Layouts], Node | str]


@dataclass(frozen=True)
class Parameters:
    """The numbers of a layer for each output channel, and the stored names of its weight."""

    scale: Tensor
    bias: Tensor | None
    name: str

    def arguments(self, rows: Tensor, packed: Tensor, layouts: Layouts) -> tuple[Any, ...]:
        """Store `packed`, the sums of its matrix `rows`, bias and scale; return them in order."""
        sums = rows.long().sum(1).int()
        bias = None if self.bias is None else layouts.constant(self.bias, f"{self.name}_bias")
        return (
            layouts.constant(packed, f"{self.name}_packed"),
            layouts.constant(sums, f"{self.name}_sums"),
            bias,
            layouts.constant(self.scale, f"{self.name}_scale"),
        )


def parameters(
    x: Operand,
    weight: Weight | Kernel,
    scales: Tensor,
    bias: object,
    out: Scale,
    constants: Constants,
) -> Parameters | str:
    """Return what requantizes the sums of a layer, or why int32 cannot hold them.

    The bias becomes a number of the sums, each of which stands for the scale of `x` times that
    of its channel.
    """
    unit = scales * x.scale.scale
    number = None
    if bias is not None:
        value = bias_of(bias, constants)
        if value is None:
            return "the bias is not a constant"
        number = (value.detach().double() / unit).round()
        if not bool((number.abs() < LIMIT).all()):
            return "the bias is too large for int32 in units of the products"
    depth = weight.value.numel() // max(len(scales), 1)
    most = depth * 255 * 128 + (0 if number is None else float(number.abs().max()))
    if most >= LIMIT:
        return f"int32 cannot hold a sum of {depth} products"
    factor = (unit / out.scale).float()
    return Parameters(factor, None if number is None else number.int(), weight.name)


def output(out: Scale) -> tuple[int, int, int]:
    """Return the last arguments of an integer operator."""
    return out.zero_point, out.low, out.high


def linear(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    """Fuse ``linear(x, weight, bias)``."""
    x = operand(found.source.args[0])
    weight = weight_of(found.source.args[1], constants)
    if isinstance(x, str) or isinstance(weight, str):
        return x if isinstance(x, str) else str(weight)
    scales = weight.channel_scales(0, weight.value.shape[0])
    if scales is None:
        return "the weight has a scale for each input, not for each output"
    bias = found.source.args[2] if len(found.source.args) > 2 else None
    numbers = parameters(x, weight, scales, bias, found.scale, constants)
    if isinstance(numbers, str):
        return numbers
    stored = numbers.arguments(weight.value, pack(weight.value), layouts)
    return layouts.call(LINEAR, x.node, *stored, x.scale.zero_point, *output(found.scale))


def conv(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    """Fuse ``convolution(x, weight, bias, ...)`` over one or two dimensions."""
    node = found.source
    x = operand(node.args[0])
    kernel = x if isinstance(x, str) else kernel_of(node, constants)
    if isinstance(x, str) or isinstance(kernel, str):
        return x if isinstance(x, str) else str(kernel)
    bias = bias_of(node.args[2], constants)
    if bias is not None and kernel.value[0].numel() == 1:
        given = bias.detach().double() / x.scale.scale
        value, scales = as_fractions(kernel.value, kernel.scales, given)
        kernel = replace(kernel, value=value, scales=scales)
    numbers = parameters(x, kernel, kernel.scales, node.args[2], found.scale, constants)
    if isinstance(numbers, str):
        return numbers
    return convolved(x.node, _convolve(kernel, numbers, x.scale, found.scale), layouts)


def _convolve(kernel: Kernel, numbers: Parameters, scale: Scale, out: Scale) -> Convolve:
    def row(image: Node, layouts: Layouts) -> Node:
        groups, rows, spacing = kernel.geometry.groups, kernel.rows, kernel.spacing()
        last = (scale.zero_point, *output(out))
        if rows.shape[0] == groups == image.meta["val"].shape[-1] and set(spacing) == {1}:
            stored = numbers.arguments(rows, rows.T.contiguous(), layouts)
            return layouts.call(DEPTHWISE_CONV, image, *stored, *kernel.window(), *last)
        stored = numbers.arguments(rows, kernel.packed(), layouts)
        return layouts.call(CONV, image, *stored, *kernel.window(), spacing, groups, *last)

    return row


LAYERS: dict[Any, Row] = {aten.linear.default: linear, aten.convolution.default: conv}
