# SPDX-License-Identifier: BSD-3-Clause
"""Three-dimensional convolution: NDHWC activations, ODHWI weights, in one group."""

from __future__ import annotations

import torch
from torch.fx import Node

from etx_backend_arm.nodes.conv import accumulator, int8_weight, summed, weight_is_constant
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.windows import fit
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten
NDHWC = (0, 2, 3, 4, 1)


def plain_3d(node: Node, look: Look) -> str | None:
    """Only convolutions of volumes that are not transposed, in one group."""
    _, _, _, _, _, _, transposed, _, groups = arguments(node)
    if node.meta["val"].dim() != 5:
        return f"{node.name} has rank {node.meta['val'].dim()}, CONV3D takes 5"
    if transposed or groups != 1:
        kind = "transposed" if transposed else f"in {groups} groups"
        return f"{node.name} is {kind}, CONV3D is neither transposed nor in groups"
    return None


def _emit(values: Values, node: Node, operands: list[str], name: str, made: DType) -> str:
    """Add the operator to an activation in the program's order; ``made`` is what it returns."""
    graph, (source, weight) = values.graph, arguments(node)[:2]
    stride, padding, dilation = (list(each) for each in arguments(node)[3:6])
    sizes, kernel = (list(each.meta["val"].shape[2:]) for each in (source, weight))
    reach = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]
    at = fit(sizes, reach, stride, padding)
    shape = [graph.shape(operands[0])[i] for i in NDHWC]
    dtype = graph.dtype(operands[0])
    volume = graph.transpose(operands[0], NDHWC, f"{node.name}_volume", shape, dtype)
    volume = at.crop(values, volume, f"{node.name}_part")
    attribute = fbs.Conv3dAttribute(
        pad=at.pads, stride=stride, dilation=dilation, acc_type=summed(made)
    )
    result = [values.shape(node)[i] for i in NDHWC]
    return graph.operator(Op.CONV3D, attribute, [volume, *operands[1:]], name, result, made)


@lowers(aten.convolution.default, when=(floating, static_shape, plain_3d, weight_is_constant))
def convolution(values: Values, node: Node) -> None:
    """Lower with a bias, zero points 0, accumulating in float32."""
    source, weight, bias = arguments(node)[:3]
    filters, offset = values.parameter(weight), values.parameter(bias)
    assert filters is not None
    offset = filters.new_zeros(filters.shape[0]) if offset is None else offset
    dtype = DTYPES[filters.dtype]
    zero = values.graph.zero_point(0, dtype)
    operands = [
        values.get(source),
        values.constant(f"{node.name}_weight", filters.permute(NDHWC)),
        values.constant(f"{node.name}_bias", offset),
        zero,
        zero,
    ]
    made = _emit(values, node, operands, f"{node.name}_made", dtype)
    values.define_in(node, made, "ndhwc")


@lowers(
    aten.convolution.default,
    when=(integers, static_shape, plain_3d, int8_weight),
    profile=Profile.INT,
)
def convolution_int8(values: Values, node: Node) -> None:
    """Lower to int8 by int8 with an int32 bias, or int16 with an int48 one, then RESCALE."""
    step, weight = values.step(node), values.weight(node.args[1])
    form, bias = step.forms[0], values.parameter(arguments(node)[2])
    filters, zero = values.filters(f"{node.name}_weight", weight.integers.permute(NDHWC), weight)
    operands = [
        values.get(step.sources[0]),
        filters,
        values.bias(f"{node.name}_bias", bias, form, weight),
        values.graph.zero_point(form.zero_point, DTYPES[form.dtype]),
        zero,
    ]
    total = _emit(values, node, operands, f"{node.name}_total", accumulator(form))
    values.requantize(step, total, (form.scale * weight.scales).tolist(), "ndhwc")
