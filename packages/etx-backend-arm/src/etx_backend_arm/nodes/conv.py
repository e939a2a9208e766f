# SPDX-License-Identifier: BSD-3-Clause
"""Two-dimensional convolution: NHWC activations; OHWI weights, or HWCM of depthwise ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_backend_arm.nodes.table import (
    Check,
    Profile,
    arguments,
    float32,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.windows import Fit, fit
from etx_backend_arm.quantized import Affine, Look, weight_of
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, PERMS, Values

aten = torch.ops.aten
HWCM = (2, 3, 0, 1)


def plain_2d(node: Node, look: Look) -> str | None:
    """Only convolutions of images that are not transposed, ungrouped or one channel a group."""
    transposed = arguments(node)[6]
    if node.meta["val"].dim() != 4:
        return f"{node.name} has rank {node.meta['val'].dim()}, CONV2D takes 4"
    if transposed:
        return f"{node.name} is transposed"
    if arguments(node)[8] != 1 and not depthwise(node):
        return f"{node.name} has {arguments(node)[8]} groups, TOSA takes 1 or one a channel"
    return None


def depthwise(node: Node) -> bool:
    """Tell whether every group has one input channel."""
    source, groups = node.args[0], arguments(node)[8]
    assert isinstance(source, Node)
    return bool(groups > 1 and groups == source.meta["val"].shape[1])


def weight_is_constant(node: Node, look: Look) -> str | None:
    """Weight and bias are placeholders of constants."""
    for each in arguments(node)[1:3]:
        if each is not None and look(each) is None:
            return f"{each.name}, a weight of {node.name}, is not a constant"
    return None


def int8_weight_by(axis: int) -> Check:
    """Return a check: the weight is int8 with a scale an output channel, which lie on ``axis``."""

    def int8_weight(node: Node, look: Look) -> str | None:
        _, weight, bias = arguments(node)[:3]
        found = weight_of(weight, look)
        if found is None or found.axis not in (None, axis):
            return f"{weight.name}, the weight of {node.name}, is not int8 with a scale a channel"
        if bias is not None and look(bias) is None:
            return f"{bias.name}, the bias of {node.name}, is not a constant"
        return None

    return int8_weight


int8_weight = int8_weight_by(0)


def fit_of(node: Node) -> Fit:
    """Return the padding, and what to crop, such that the strides divide."""
    source, weight, _, stride, padding, dilation = arguments(node)[:6]
    sizes, kernel = source.meta["val"].shape[2:], weight.meta["val"].shape[2:]
    reach = [dilation[axis] * (kernel[axis] - 1) + 1 for axis in range(2)]
    return fit(list(sizes), reach, stride, padding)


def accumulator(form: Affine) -> DType:
    """Return the type of sums of products with such activations."""
    return DType.INT48 if form.is_wide else DType.INT32


def kernel(node: Node, weight: Tensor) -> Tensor:
    """Return a weight in the order of CONV2D or DEPTHWISE_CONV2D."""
    if not depthwise(node):
        return weight.permute(PERMS["nhwc"])
    channels = arguments(node)[8]
    return weight.reshape(channels, -1, *weight.shape[2:]).permute(HWCM)


def emit(values: Values, node: Node, operands: list[str], name: str, made: DType) -> str:
    """Add the operator; ``made`` is the type of what it accumulates and returns."""
    stride, dilation, at = arguments(node)[3], arguments(node)[5], fit_of(node)
    operands[0] = at.crop(values, operands[0], f"{node.name}_part")
    kind: Any = fbs.DepthwiseConv2dAttribute if depthwise(node) else fbs.Conv2dAttribute
    attribute = kind(pad=at.pads, stride=stride, dilation=dilation, acc_type=made)
    op = Op.DEPTHWISE_CONV2D if depthwise(node) else Op.CONV2D
    return values.graph.operator(op, attribute, operands, name, values.shape(node, "nhwc"), made)


@lowers(aten.convolution.default, when=(float32, static_shape, plain_2d, weight_is_constant))
def convolution(values: Values, node: Node) -> None:
    """Lower with a bias, zero points 0, accumulating in float32."""
    source, weight, bias = arguments(node)[:3]
    filters = values.parameter(weight)
    assert filters is not None
    offset = values.parameter(bias) if bias is not None else torch.zeros(filters.shape[0])
    assert offset is not None
    name, zero = node.name, torch.zeros(1)
    operands = [
        values.get(source, "nhwc"),
        values.constant(f"{name}_weight", kernel(node, filters)),
        values.constant(f"{name}_bias", offset),
        values.constant(f"{name}_input_zero_point", zero),
        values.constant(f"{name}_weight_zero_point", zero),
    ]
    values.define(node, emit(values, node, operands, name, DType.FP32), "nhwc")


@lowers(
    aten.convolution.default,
    when=(integers, static_shape, plain_2d, int8_weight),
    profile=Profile.INT,
)
def convolution_int8(values: Values, node: Node) -> None:
    """Lower to int8 by int8 with an int32 bias, or int16 with an int48 one, then RESCALE."""
    step, weight = values.step(node), values.weight(node.args[1])
    bias = values.parameter(arguments(node)[2])
    name, form = node.name, step.forms[0]
    filters, zero = values.filters(f"{name}_weight", kernel(node, weight.integers), weight)
    operands = [
        values.get(step.sources[0], "nhwc"),
        filters,
        values.bias(f"{name}_bias", bias, form, weight),
        values.graph.zero_point(form.zero_point, DTYPES[form.dtype]),
        zero,
    ]
    total = emit(values, node, operands, f"{name}_total", accumulator(form))
    values.requantize(step, total, (form.scale * weight.scales).tolist(), "nhwc")
