# SPDX-License-Identifier: BSD-3-Clause
"""Transposed convolutions of images."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.conv import (
    MOST_GROUPS,
    accumulator,
    int8_weight_by,
    weight_is_constant,
)
from etx_backend_arm.nodes.moves import cut
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten
OHWI = (1, 2, 3, 0)
"""From ATen's order of the weight of a transposed convolution."""


def transposed_2d(node: Node, look: Look) -> str | None:
    """It is a transposed convolution of images."""
    if arguments(node)[6] and node.meta["val"].dim() == 4:
        return None
    return f"{node.name} is not a transposed convolution of images"


def without_gaps(node: Node, look: Look) -> str | None:
    """It has no gaps, and few groups."""
    dilation, groups = arguments(node)[5], arguments(node)[8]
    if any(each != 1 for each in dilation):
        return f"{node.name} has a dilation of {dilation}, TRANSPOSE_CONV2D takes 1"
    if groups > MOST_GROUPS:
        return f"{node.name} has {groups} groups, at most {MOST_GROUPS} are taken apart"
    return None


FORM = (static_shape, transposed_2d, without_gaps)


@lowers(
    aten.convolution.default,
    when=(integers, *FORM, int8_weight_by(1)),
    profile=Profile.INT,
)
@lowers(aten.convolution.default, when=(floating, *FORM, weight_is_constant))
def transposed(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE_CONV2D, one for each group: padding crops the result."""
    call = Call(values, node, "nhwc")
    source, weight, bias, *_, groups = call.arguments
    held = values.weight(weight) if call.step else None
    filters = held.integers if held else values.parameter(weight)
    assert filters is not None
    inputs, outputs = filters.shape[0] // groups, filters.shape[1]
    offset = filters.new_zeros(outputs * groups) if bias is None else values.parameter(bias)
    assert offset is not None
    value = call.get(source)
    sizes, parts = call.graph.shape(value)[:3], []
    scales = (call.form(source).scale * held.scales).tolist() if held else None
    for i in range(groups):
        taken = cut(call, value, [0, 0, 0, i * inputs], [*sizes, inputs], f"channels_{i}")
        own = filters[i * inputs : (i + 1) * inputs], offset[i * outputs : (i + 1) * outputs]
        parts.append(_group(call, taken, *own, str(i)))
    if groups == 1:
        call.done(parts[0], scales)
        return
    if call.step is not None and scales is not None:
        form = call.step.form
        ratios, points = [scale / form.scale for scale in scales], (0, form.zero_point)
        dtype, names = DTYPES[form.dtype], [call.fresh(f"group_{i}") for i in range(groups)]
        pairs = zip(parts, names, strict=True)
        parts = [call.graph.rescale(part, ratios, points, name, dtype) for part, name in pairs]
    attribute = fbs.ConcatAttribute(axis=3)
    call.same(call.emit(Op.CONCAT, attribute, parts, "joined", call.shape))


def _group(call: Call, value: str, filters: torch.Tensor, offset: torch.Tensor, name: str) -> str:
    _, weight, _, stride, padding, _, _, beyond, _ = call.arguments
    pads = [-padding[0], beyond[0] - padding[0], -padding[1], beyond[1] - padding[1]]
    graph, values = call.graph, call.values
    given = values.constant(call.fresh(f"weight_{name}"), filters.permute(OHWI))
    if call.step is None:
        zero = graph.zero_point(0, graph.dtype(value))
        bias = values.constant(call.fresh(f"bias_{name}"), offset)
        made, summed, points = graph.dtype(value), DType.FP32, [zero, zero]
    else:
        form, held = call.form(call.operands[0]), values.weight(weight)
        made = summed = accumulator(form)
        of_group = replace(held, integers=filters.transpose(0, 1))
        bias = values.bias(call.fresh(f"bias_{name}"), offset, form, of_group)
        points = [
            graph.zero_point(form.zero_point, graph.dtype(value)),
            graph.zero_point(0, DType.INT8),
        ]
    attribute = fbs.TransposeConv2dAttribute(out_pad=pads, stride=stride, acc_type=summed)
    shape, operands = [*call.shape[:3], filters.shape[1]], [value, given, bias, *points]
    total = call.fresh(f"total_{name}")
    return graph.operator(Op.TRANSPOSE_CONV2D, attribute, operands, total, shape, made)
