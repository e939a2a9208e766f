# SPDX-License-Identifier: BSD-3-Clause
"""Linear layers: a 1x1 CONV2D whose rows are an image of width 1."""

from __future__ import annotations

from math import prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.conv import accumulator, int8_weight, weight_is_constant
from etx_backend_arm.nodes.table import Profile, arguments, floating, lowers, static_shape
from etx_backend_arm.nodes.table import integers as of_integers
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten


@lowers(aten.linear.default, when=(of_integers, static_shape, int8_weight), profile=Profile.INT)
def linear_int8(values: Values, node: Node) -> None:
    """Lower to CONV2D of integers with a bias, then RESCALE."""
    step, weight = values.step(node), values.weight(node.args[1])
    bias, name, form = values.parameter(arguments(node)[2]), node.name, step.forms[0]
    outputs, inputs = weight.integers.shape
    rows = prod(values.shape(node)[:-1])
    graph = values.graph
    source = graph.reshape(values.get(step.sources[0]), [1, rows, 1, inputs], f"{name}_rows")
    integers = weight.integers.reshape(outputs, 1, 1, inputs)
    filters, zero = values.filters(f"{name}_weight", integers, weight)
    operands = [
        source,
        filters,
        values.bias(f"{name}_bias", bias, form, weight),
        graph.zero_point(form.zero_point, DTYPES[form.dtype]),
        zero,
    ]
    made, shape = accumulator(form), [1, rows, 1, outputs]
    attribute = fbs.Conv2dAttribute(pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=made)
    total = graph.operator(Op.CONV2D, attribute, operands, f"{name}_total", shape, made)
    values.requantize(step, total, (form.scale * weight.scales).tolist())


@lowers(aten.linear.default, when=(floating, static_shape, weight_is_constant))
def linear(values: Values, node: Node) -> None:
    """Lower to CONV2D, accumulating in float32."""
    source, weight, bias = arguments(node)
    matrix, offset = values.parameter(weight), values.parameter(bias)
    assert matrix is not None
    outputs, inputs = matrix.shape
    rows, graph, name = prod(values.shape(node)[:-1]), values.graph, node.name
    dtype = DTYPES[matrix.dtype]
    zero = graph.zero_point(0, dtype)
    operands = [
        graph.reshape(values.get(source), [1, rows, 1, inputs], f"{name}_rows"),
        values.constant(f"{name}_weight", matrix.reshape(outputs, 1, 1, inputs)),
        values.constant(f"{name}_bias", matrix.new_zeros(outputs) if offset is None else offset),
        zero,
        zero,
    ]
    attribute = fbs.Conv2dAttribute(
        pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=DType.FP32
    )
    shape = [1, rows, 1, outputs]
    made = graph.operator(Op.CONV2D, attribute, operands, f"{name}_rows_made", shape, dtype)
    values.define(node, graph.reshape(made, values.shape(node), name))
