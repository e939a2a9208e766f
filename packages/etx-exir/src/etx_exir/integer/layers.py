# SPDX-License-Identifier: BSD-3-Clause
"""Linear layers and convolutions of int8 tensors with constant int8 weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_exir.integer.clamps import Clamped
from etx_exir.integer.fine_bias import as_fractions
from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import Operand, Scale, Weight, operand, weight_of
from etx_exir.ir.constants import Constants
from etx_exir.ir.integer_ops import CONV, DEPTHWISE_CONV, LINEAR
from etx_exir.ir.ops import SQUEEZE, UNSQUEEZE
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
    x: Operand, weight: Weight, scales: Tensor, bias: object, out: Scale, constants: Constants
) -> Parameters | str:
    """Return what requantizes the sums of a layer, or why int32 cannot hold them.

    The bias becomes a number of the sums, each of which stands for the scale of `x` times that
    of its channel.
    """
    unit = scales * x.scale.scale
    number = None
    if bias is not None:
        value = constants.get(bias)
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


@dataclass(frozen=True)
class Geometry:
    """A convolution over two dimensions; `padding` is top, left, bottom, right."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    spacing: Sequence[int]
    groups: int


def _geometry(node: Node, kernel: Sequence[int]) -> Geometry | str:
    given: Any = node.args[3:9]
    stride, padding, dilation, transposed, extra, groups = given
    if not all(isinstance(n, int) for n in (*stride, *padding, *dilation, *extra)):
        return "a parameter of the convolution is computed at run time"
    if not transposed:
        return Geometry(stride, [*padding, *padding], dilation, [1] * len(stride), groups)
    before = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    after = [b + e for b, e in zip(before, extra, strict=True)]
    if min(*before, *after) < 0:
        return "the padding of the transposed convolution cuts its result"
    return Geometry([1] * len(stride), [*before, *after], dilation, stride, groups)


def _oriented(weight: Tensor, node: Node) -> Tensor:
    """Return what lies like the weight of a convolution as (O, C / groups, ...)."""
    groups: Any = node.args[8]
    if not node.args[6]:
        return weight
    rows, columns, *kernel = weight.shape
    flipped = weight.flip(*range(2, weight.dim())) if kernel else weight
    split = flipped.reshape(groups, rows // groups, columns, *kernel).transpose(1, 2)
    return split.reshape(groups * columns, rows // groups, *kernel)


def conv(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    """Fuse ``convolution(x, weight, bias, ...)`` over one or two dimensions."""
    node = found.source
    x = operand(node.args[0])
    weight = weight_of(node.args[1], constants)
    if isinstance(x, str) or isinstance(weight, str):
        return x if isinstance(x, str) else str(weight)
    if x.node.meta["val"].dim() != weight.value.dim() or weight.value.dim() not in (3, 4):
        return "only batches of one or two dimensions are convolved in integers"
    kernel = _oriented(weight.value, node)
    geometry = _geometry(node, kernel.shape[2:])
    if isinstance(geometry, str):
        return geometry
    scales = _output_scales(weight, node)
    if scales is None:
        return "the weight has a scale for each input channel, not for each output channel"
    bias = constants.get(node.args[2])
    if bias is not None and kernel[0].numel() == 1:
        kernel, scales = as_fractions(kernel, scales, bias.detach().double() / x.scale.scale)
    numbers = parameters(x, weight, scales, node.args[2], found.scale, constants)
    if isinstance(numbers, str):
        return numbers
    image = layouts.channels_last(x.node)
    result = _convolve(image, kernel, numbers, geometry, x.scale, found.scale, layouts)
    return layouts.channels_first(result)


def _output_scales(weight: Weight, node: Node) -> Tensor | None:
    """Return the scale of each output channel, None where it is not the same for all inputs."""
    rows, columns = weight.value.shape[:2]
    if weight.axis not in (None, 0, 1):
        return None
    scales = weight.scales if weight.axis else weight.scales.reshape(-1, 1)
    oriented = _oriented(scales.expand(rows, columns), node)
    return oriented[:, 0] if bool((oriented == oriented[:, :1]).all()) else None


def _convolve(
    image: Node,
    kernel: Tensor,
    numbers: Parameters,
    geometry: Geometry,
    scale: Scale,
    out: Scale,
    layouts: Layouts,
) -> Node:
    """Add the convolution of (N, ..., C); over one dimension as one over rows of height 1."""
    channels = image.meta["val"].shape[-1]
    flat = kernel.dim() == 3
    if flat:
        kernel = kernel.unsqueeze(2)
        left, right = geometry.padding
        geometry = Geometry(
            [1, *geometry.stride], [0, left, 0, right], [1, *geometry.dilation],
            [1, *geometry.spacing], geometry.groups,
        )  # fmt: skip
        image = layouts.call(UNSQUEEZE, image, 1)
    height, width = kernel.shape[2:]
    taps = kernel.permute(0, 2, 3, 1)
    rows = taps.reshape(kernel.shape[0], -1)
    depthwise = kernel.shape[0] == geometry.groups == channels and set(geometry.spacing) == {1}
    window = (
        [height, width],
        list(geometry.stride),
        list(geometry.padding),
        list(geometry.dilation),
    )
    if depthwise:
        stored = numbers.arguments(rows, rows.T.contiguous(), layouts)
        result = layouts.call(
            DEPTHWISE_CONV, image, *stored, *window, scale.zero_point, *output(out)
        )
    else:
        packed = torch.cat([pack(part) for part in rows.chunk(geometry.groups)])
        stored = numbers.arguments(rows, packed, layouts)
        more = (list(geometry.spacing), geometry.groups, scale.zero_point)
        result = layouts.call(CONV, image, *stored, *window, *more, *output(out))
    if flat:
        result = layouts.call(SQUEEZE, result, [1])
    return result


LAYERS: dict[Any, Row] = {aten.linear.default: linear, aten.convolution.default: conv}
