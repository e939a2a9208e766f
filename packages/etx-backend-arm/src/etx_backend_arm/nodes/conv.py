# SPDX-License-Identifier: BSD-3-Clause
"""Two-dimensional convolution as CONV2D: NHWC activations, OHWI weights."""

from __future__ import annotations

import torch
from torch.fx import Node

from etx_backend_arm.nodes.table import arguments, float32, lowers, static_shape
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import PERMS, Values

aten = torch.ops.aten


def plain_2d(node: Node) -> str | None:
    """Only ungrouped, not transposed convolutions of images."""
    transposed, groups = arguments(node)[6], arguments(node)[8]
    if node.meta["val"].dim() != 4:
        return f"{node.name} has rank {node.meta['val'].dim()}, CONV2D takes 4"
    if transposed:
        return f"{node.name} is transposed"
    if groups != 1:
        return f"{node.name} has {groups} groups, CONV2D takes 1"
    return None


def weight_is_constant(node: Node) -> str | None:
    """Weight and bias are placeholders of constants (checked by the partitioner)."""
    for each in arguments(node)[1:3]:
        if each is not None and each.op != "placeholder":
            return f"{each.name}, a weight of {node.name}, is computed at run time"
    return None


def padding_of(node: Node) -> list[int] | None:
    """Return top, bottom, left, right such that the strides divide exactly, None if impossible.

    TOSA requires (size + pads - dilated kernel) to be a multiple of the stride; ATen drops the
    remainder, so as much is taken off the padding behind.
    """
    source, weight, _, stride, padding, dilation = arguments(node)[:6]
    pads = []
    for axis in range(2):
        size, kernel = source.meta["val"].shape[2 + axis], weight.meta["val"].shape[2 + axis]
        reach = size + 2 * padding[axis] - dilation[axis] * (kernel - 1) - 1
        rest = reach % stride[axis]
        if rest > padding[axis]:
            return None
        pads += [padding[axis], padding[axis] - rest]
    return pads


def divides(node: Node) -> str | None:
    """The strides must divide, after taking padding off."""
    if padding_of(node) is None:
        return f"{node.name}: its stride leaves a remainder that is not padding"
    return None


CHECKS = (plain_2d, float32, static_shape, weight_is_constant, divides)


@lowers(aten.convolution.default, when=CHECKS)
def convolution(values: Values, node: Node) -> None:
    """Lower to CONV2D with a bias, zero points 0, accumulating in float32."""
    source, weight, bias, stride, _, dilation = arguments(node)[:6]
    filters = values.parameter(weight)
    assert filters is not None
    offset = values.parameter(bias) if bias is not None else torch.zeros(filters.shape[0])
    assert offset is not None
    name, zero = node.name, torch.zeros(1)
    operands = [
        values.get(source, "nhwc"),
        values.constant(f"{name}_weight", filters.permute(PERMS["nhwc"])),
        values.constant(f"{name}_bias", offset),
        values.constant(f"{name}_input_zero_point", zero),
        values.constant(f"{name}_weight_zero_point", zero),
    ]
    attribute = fbs.Conv2dAttribute(
        pad=padding_of(node) or [], stride=stride, dilation=dilation, acc_type=DType.FP32
    )
    shape = values.shape(node, "nhwc")
    values.graph.operator(Op.CONV2D, attribute, operands, name, shape, DType.FP32)
    values.define(node, name, "nhwc")
