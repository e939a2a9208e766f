# SPDX-License-Identifier: BSD-3-Clause
"""Transposed convolutions of images."""

from __future__ import annotations

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.conv import int8_weight_by, weight_is_constant
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    lowers,
    quantized,
    static_shape,
)
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
OHWI = (1, 2, 3, 0)
"""From ATen's order of the weight of a transposed convolution."""


def transposed_2d(node: Node, look: Look) -> str | None:
    """It is a transposed convolution of images."""
    if arguments(node)[6] and node.meta["val"].dim() == 4:
        return None
    return f"{node.name} is not a transposed convolution of images"


def in_one_group(node: Node, look: Look) -> str | None:
    """It has one group, and no gaps."""
    dilation, groups = arguments(node)[5], arguments(node)[8]
    if groups == 1 and all(each == 1 for each in dilation):
        return None
    return f"{node.name} has {groups} groups and a dilation of {dilation}, TRANSPOSE_CONV2D takes 1"


@lowers(
    aten.convolution.default,
    when=(quantized, static_shape, transposed_2d, in_one_group, int8_weight_by(1)),
    profile=Profile.INT,
)
@lowers(
    aten.convolution.default,
    when=(floating, static_shape, transposed_2d, in_one_group, weight_is_constant),
)
def transposed(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE_CONV2D: padding crops the result."""
    call = Call(values, node, "nhwc")
    source, weight, bias, stride, padding, _, _, beyond, _ = call.arguments
    pads = [-padding[0], beyond[0] - padding[0], -padding[1], beyond[1] - padding[1]]
    operands = [call.get(source)]
    name, scales = call.name, None
    if call.step is None:
        filters = values.parameter(weight)
        assert filters is not None
        offset = filters.new_zeros(filters.shape[1]) if bias is None else values.parameter(bias)
        assert offset is not None
        made = call.graph.dtype(operands[0])
        zero = call.graph.zero_point(0, made)
        operands += [
            values.constant(f"{name}_weight", filters.permute(OHWI)),
            values.constant(f"{name}_bias", offset),
            zero,
            zero,
        ]
    else:
        form, held = call.form(source), values.weight(weight)
        graph, outputs = call.graph, held.integers.shape[1]
        offset = torch.zeros(outputs) if bias is None else values.parameter(bias)
        operands += [
            values.constant(f"{name}_weight", held.integers.permute(OHWI)),
            values.bias(f"{name}_bias", offset, form, held),
            graph.zero_point(form.zero_point, DType.INT8),
            graph.zero_point(0, DType.INT8),
        ]
        made, scales = DType.INT32, (form.scale * held.scales).tolist()
    summed = DType.INT32 if call.step else DType.FP32
    attribute = fbs.TransposeConv2dAttribute(out_pad=pads, stride=stride, acc_type=summed)
    op, total = Op.TRANSPOSE_CONV2D, call.fresh("total")
    call.done(call.graph.operator(op, attribute, operands, total, call.shape, made), scales)
