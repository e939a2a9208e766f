# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of images that are quantized at run time, with constant int8 weights."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from etx_exir.integer.clamps import CLAMPS
from etx_exir.integer.kernel import Convolve, Kernel, convolved, kernel_of
from etx_exir.integer.layers import LIMIT
from etx_exir.integer.layout import Layouts, is_image
from etx_exir.integer.linear_weights import FLOATS, INF, converted
from etx_exir.ir.constants import Constants
from etx_exir.ir.integer_ops import DYNAMIC_CONV
from etx_exir.ir.packed_weights import ROWS


def dynamic_conv(node: Node, quantize: Node, constants: Constants, layouts: Layouts) -> Node | str:
    """Return the convolution `node` of the integers that `quantize` returns."""
    dtype = node.meta["val"].dtype
    if dtype not in FLOATS:
        return f"the result is {dtype}, not one of {', '.join(map(str, FLOATS))}"
    kernel = kernel_of(node, constants)
    if isinstance(kernel, str):
        return kernel
    groups, channels = kernel.geometry.groups, kernel.value.shape[0]
    if groups > 1 and channels // groups < ROWS:
        return f"of {groups} groups of {channels // groups} channels float32 is faster"
    depth = kernel.rows.shape[1]
    if depth * 255 * 128 >= LIMIT:
        return f"int32 cannot hold a sum of {depth} products"
    bias = None if node.args[2] is None else converted(torch.float32, node.args[2], layouts)
    integers, numbers = _integers(quantize, layouts)
    result = convolved(integers, _call(kernel, numbers, bias), layouts)
    return converted(dtype, result, layouts)


def _integers(quantize: Node, layouts: Layouts) -> tuple[Node, tuple[Any, ...]]:
    """Return what `quantize` returns, and its scale and zero point.

    The range of an image whose channels lie last is found there, and it is quantized there.
    """
    image: Any = quantize.args[0]
    numbers: Any = quantize.args[1:3]
    if not is_image(image):
        return quantize, numbers
    last, choose = layouts.channels_last(image), numbers[0].args[0]
    chosen = layouts.call(choose.target, last, *choose.args[1:])
    found = tuple(layouts.call(operator.getitem, chosen, i) for i in (0, 1))
    integers = layouts.call(quantize.target, last, *found, *quantize.args[3:])
    return layouts.channels_first(integers), found


def _call(kernel: Kernel, numbers: tuple[Any, ...], bias: Node | None) -> Convolve:
    def row(image: Node, layouts: Layouts) -> Node:
        rows, name = kernel.rows, kernel.name
        sums = layouts.constant(rows.long().sum(1).int(), f"{name}_sums")
        packed = layouts.constant(kernel.packed(), f"{name}_packed")
        scales = layouts.constant(kernel.scales.float().contiguous(), f"{name}_scales")
        window = (*kernel.window(), kernel.spacing(), kernel.geometry.groups)
        weight = (packed, sums, scales, bias)
        return layouts.call(DYNAMIC_CONV, image, *numbers, *weight, *window, -INF, INF)

    return row


def within(clamp: Node, layouts: Layouts) -> Node | str | None:
    """Return what `clamp` bounds with its bounds; None where it is of something else."""
    source: Any = clamp.args[0]
    call: Any = source.args[0] if isinstance(source, Node) and is_image(source) else None
    if call is None or call.target is not DYNAMIC_CONV:
        return None
    if len(source.users) > 1 or len(call.users) > 1:
        return "another operator reads the result before it is bounded"
    found = CLAMPS[clamp.target](clamp)
    if found is None or not found[0] <= found[1] or call.args[-2:] != (-INF, INF):
        return None
    return layouts.channels_first(layouts.call(DYNAMIC_CONV, *call.args[:-2], *found))
