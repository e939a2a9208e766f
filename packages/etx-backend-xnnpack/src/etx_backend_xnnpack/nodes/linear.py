# SPDX-License-Identifier: BSD-3-Clause
"""Fully connected layers: float, int8, and with rows that are quantized at run time."""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack import layout, weights
from etx_backend_xnnpack._generated.xnnpack import DataType, FullyConnected, Operator
from etx_backend_xnnpack.builder import NONE
from etx_backend_xnnpack.layout import Order, plain
from etx_backend_xnnpack.nodes.scales import adds_products
from etx_backend_xnnpack.nodes.table import Work, constant, lowers
from etx_backend_xnnpack.quantized import Weight, dynamic, weight
from etx_backend_xnnpack.values import Result, Values

aten = torch.ops.aten
GROUP_STEP = 32


def of_outputs(node: Node, constants: Constants) -> str | None:
    """Require scales of outputs, or groups of 32 inputs with rows quantized at run time."""
    found = weight(node.args[1], constants.get)
    if found is None:
        return None
    if not bool((found.scales > torch.finfo(torch.float32).tiny).all()):
        return "a scale of its weight is not a positive normal number"
    if found.scales.dim() and found.axis != 0:
        return "the scales of its weight are those of inputs"
    if found.scales.dim() == 2:
        size = found.integers.shape[1] // found.scales.shape[1]
        if size % GROUP_STEP:
            return f"groups of {size} inputs; expected a multiple of {GROUP_STEP}"
        if dynamic(node.args[0]) is None:
            return "its weight has groups, but its argument is not quantized at run time"
    return None


@lowers(
    aten.linear.default,
    when=[constant("weight"), constant("bias"), of_outputs],
    work=Work.HEAVY,
    int8=True,
    dynamic=True,
    kind="linear",
)
def linear(values: Values, node: Node) -> None:
    """Emit a fully connected node, in the numbers that its argument and weight have."""
    source: Any = node.args[0]
    bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")
    biases = None if bias is None else values.tensor(bias)
    stored = values.weight(node.args[1])
    at_run_time = dynamic(source)
    builder = values.builder
    if stored is not None:
        builder.dtype = DataType.FP32
    if at_run_time is not None and stored is not None:
        number, order = values.rows(at_run_time.source)
        result = values.result(node, clamps=True)
        weight_id = _row_weight(values, stored)
        emit(values, result, order, (number, weight_id, weights.float_bias(builder, biases)))
        return
    form = values.quantized(source)
    affine = form.affine if form else None
    holds = adds_products(stored, affine, values.quantizes(node, clamps=True), biases)
    result = values.result(node, clamps=True, quantizes=_is_int8(stored) and holds)
    order = values.last(source, len(values.sizes(source)) - 1)
    if result.affine is not None and form and form.affine and stored:
        number = values.get(source, order, form.affine)
        weight_id = weights.int8_weight(builder, stored, stored.integers)
        bias_id = weights.int32_bias(builder, biases, form.affine, stored)
    elif stored is not None and stored.scales.dim() < 2:
        _weight_only(values, result, order, values.get(source, order), stored, biases)
        return
    else:
        number = values.get(source, order)
        tensor = values.tensor(node.args[1])
        assert tensor is not None
        weight_id = weights.float_weight(builder, tensor)
        bias_id = weights.float_bias(builder, biases)
    emit(values, result, order, (number, weight_id, bias_id))


def _is_int8(stored: Weight | None) -> bool:
    return stored is not None and stored.bits == 8 and stored.scales.dim() < 2


def _row_weight(values: Values, stored: Weight) -> int:
    """Store a weight; int4 rows that do not end with a byte are stored as int8."""
    if stored.bits == 4 and (stored.scales.dim() == 2 or stored.integers.shape[1] % 2 == 0):
        return weights.int4_weight(values.builder, _by_channel(stored))
    return weights.int8_weight(values.builder, _by_channel(stored), stored.integers)


def _by_channel(stored: Weight) -> Weight:
    """Return the weight with a scale for each output where it had one for all."""
    if stored.scales.dim():
        return stored
    scales = stored.scales.expand(stored.integers.shape[0]).contiguous()
    return Weight(stored.integers, scales, 0, stored.bits)


def _weight_only(
    values: Values, result: Result, order: Order, number: int, stored: Weight, bias: Tensor | None
) -> None:
    """Emit a product of float activations and integers; a bias is added behind it.

    XNNPACK's kernels of this pair multiply a bias of their own with the weight's scales.
    """
    weight_id = _row_weight(values, stored)
    if bias is None:
        emit(values, result, order, (number, weight_id, NONE))
        return
    sizes = layout.ordered(values.sizes(result.node), order)
    product = values.builder.value(sizes)
    operator = FullyConnected(
        input1_id=number, filter_id=weight_id, bias_id=NONE, output_id=product
    )
    values.builder.node(Operator.FullyConnected, operator)
    other = values.builder.constant(bias)
    target = values.output(result, order)
    values.builder.binary(Operator.Add, product, other, target, result.range)


def emit(
    values: Values, result: Result, order: Order, ids: tuple[int, int, int], flags: int = 0
) -> None:
    """Add a fully connected node."""
    values.builder.node(
        Operator.FullyConnected,
        FullyConnected(
            input1_id=ids[0],
            filter_id=ids[1],
            bias_id=ids[2],
            output_id=values.output(result, order),
            flags=flags,
        ),
        result.range,
    )


def plain_sum(node: Node, constants: Constants) -> str | None:
    """Require a sum in which nothing is scaled."""
    for name in ("alpha", "beta"):
        if node.kwargs.get(name, 1) != 1:
            return f"{name} is {node.kwargs[name]}; XNNPACK's has none"
    return None


@lowers(aten.addmm.default, when=[constant("mat2"), plain_sum], work=Work.HEAVY, kind="linear")
def addmm(values: Values, node: Node) -> None:
    """Emit a fully connected node, and a sum where what is added is not one number an output."""
    bias: Any = node.args[0]
    added = values.tensor(bias)
    if added is not None and list(added.shape) == values.sizes(node)[1:]:
        _product(values, values.result(node, clamps=True), node.args[1], node.args[2], added)
        return
    result = values.result(node, clamps=True)
    product = _columns(values, node.args[1], node.args[2], values.builder.value(values.sizes(node)))
    target = values.output(result, plain(2))
    values.builder.binary(Operator.Add, product, values.get(bias), target, result.range)


def _columns(values: Values, source: Any, matrix: Any, target: int) -> int:
    """Multiply with a constant matrix on the right; return the value."""
    number, filters = values.get(source), _matrix(values, matrix)
    operator = FullyConnected(input1_id=number, filter_id=filters, bias_id=NONE, output_id=target)
    values.builder.node(Operator.FullyConnected, operator)
    return target


def _matrix(values: Values, matrix: Any) -> int:
    tensor = values.tensor(matrix)
    assert tensor is not None
    return weights.float_weight(values.builder, tensor.t().contiguous())


def _product(values: Values, result: Result, source: Any, matrix: Any, bias: Tensor | None) -> None:
    order = values.last(source, 1)
    number, weight_id = values.get(source, order), _matrix(values, matrix)
    emit(values, result, order, (number, weight_id, weights.float_bias(values.builder, bias)))


def mm_of_constant(values: Values, node: Node) -> None:
    """Emit a product with a constant matrix on the right."""
    _product(values, values.result(node, clamps=True), node.args[0], node.args[1], None)
