# SPDX-License-Identifier: BSD-3-Clause
"""Operators of two tensors: in int32 between two RESCALEs, or in floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import Profile, arguments, float32, integers, lowers, static_shape
from etx_backend_arm.quantized import Look, affine
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import Total, Values

aten = torch.ops.aten
HEADROOM, WIDE_HEADROOM = 2**20, 2**14
"""Sums are of multiples of a step of the larger scale, this small: of int8 and of int16."""
LARGEST = 2.0**31 - 1


def two_tensors(node: Node, look: Look) -> str | None:
    """Both operands are tensors."""
    if all(isinstance(each, Node) for each in node.args[:2]):
        return None
    return f"{node.name} has a number for an operand, its lowering takes two tensors"


def both_integer(node: Node, look: Look) -> str | None:
    """Both operands are dequantized, constants too."""
    for each in node.args[:2]:
        if not isinstance(each, Node) or affine(each) is None:
            return f"{each}, an operand of {node.name}, is not dequantized from int8"
    return None


def plain_sum(node: Node, look: Look) -> str | None:
    """The second operand has no factor."""
    alpha = arguments(node)[2]
    return None if alpha == 1 else f"{node.name} has alpha={alpha}"


class Pair:
    """Both operands in one layout and of one rank, and the shape of the result."""

    def __init__(self, values: Values, node: Node) -> None:
        self.call = Call(values, node)
        self.nodes = [each for each in node.args[:2] if isinstance(each, Node)]
        rank = node.meta["val"].dim()
        if any(each.meta["val"].dim() != rank for each in self.nodes):
            self.call.layout = "nchw"
        self.names = [self._of_rank(each, rank) for each in self.nodes]

    def _of_rank(self, node: Node, rank: int) -> str:
        name = self.call.get(node)
        sizes = self.call.graph.shape(name)
        if len(sizes) == rank:
            return name
        return self.call.reshape(name, [1] * (rank - len(sizes)) + sizes, f"{node.name}_of_rank")

    def reach(self, node: Node, unit: float) -> float:
        """Return how far an operand can be from zero, in multiples of ``unit``."""
        form = self.call.form(node)
        return (form.high - form.low) * form.scale / unit

    def total(self) -> tuple[Node, Total] | None:
        """Return an operand that is a sum, where it is still in int32 and the other fits it."""
        values, shape = self.call.values, self.call.shape
        for node, other in zip(self.nodes, self.nodes[::-1], strict=True):
            found = values.totals.get(self.call.source(node))
            if found is None or other is node or found.layout != self.call.layout:
                continue
            most = found.most + self.reach(other, found.unit)
            if self.call.graph.shape(found.name) == shape and most < LARGEST:
                return node, replace(found, most=most)
        return None

    def wide(self, unit: float | None = None, kept: tuple[Node, str] | None = None) -> list[str]:
        """Return both as int32: in multiples of ``unit``, or of their own scales.

        ``kept`` is an operand that is so already.
        """
        made = []
        for i, (node, name) in enumerate(zip(self.nodes, self.names, strict=True)):
            if kept is not None and kept[0] is node:
                made.append(kept[1])
                continue
            form = self.call.form(node)
            ratio = 1.0 if unit is None else form.scale / unit
            made.append(self.call.wide(name, ratio, form.zero_point, f"wide_{i}"))
        return made


def _both_ways(op: Op, attribute: Any, values: Values, node: Node) -> None:
    pair = Pair(values, node)
    call = pair.call
    if call.step is None:
        call.done(call.emit(op, attribute, pair.names, "made", call.shape))
        return
    headroom = WIDE_HEADROOM if call.step.form.is_wide else HEADROOM
    unit = 2 * max(call.form(each).scale for each in pair.nodes) / headroom
    is_sum = op in (Op.ADD, Op.SUB)
    found = pair.total() if is_sum else None
    most = sum(pair.reach(each, unit) for each in pair.nodes)
    if found is None:
        operands = pair.wide(unit)
    else:
        unit, most = found[1].unit, found[1].most
        operands = pair.wide(unit, (found[0], found[1].name))
    total = call.emit(op, attribute, operands, "total", call.shape)
    if values.wide_sums and is_sum and call.step.clamp is None:
        values.totals[call.result] = Total(total, unit, most, call.layout)
    call.done(total, unit)


INTEGER = (integers, static_shape, two_tensors, both_integer)
FLOAT = (float32, static_shape, two_tensors)


@lowers(aten.add.Tensor, when=(*INTEGER, plain_sum), profile=Profile.INT)
@lowers(aten.add.Tensor, when=(*FLOAT, plain_sum))
def add(values: Values, node: Node) -> None:
    """Lower to ADD."""
    _both_ways(Op.ADD, fbs.AddAttribute(), values, node)


@lowers(aten.sub.Tensor, when=(*INTEGER, plain_sum), profile=Profile.INT)
@lowers(aten.sub.Tensor, when=(*FLOAT, plain_sum))
def sub(values: Values, node: Node) -> None:
    """Lower to SUB."""
    _both_ways(Op.SUB, fbs.SubAttribute(), values, node)


@lowers(aten.maximum.default, when=INTEGER, profile=Profile.INT)
@lowers(aten.maximum.default, when=FLOAT)
def maximum(values: Values, node: Node) -> None:
    """Lower to MAXIMUM."""
    attribute = fbs.MaximumAttribute(nan_mode=NanPropagationMode.PROPAGATE)
    _both_ways(Op.MAXIMUM, attribute, values, node)


@lowers(aten.minimum.default, when=INTEGER, profile=Profile.INT)
@lowers(aten.minimum.default, when=FLOAT)
def minimum(values: Values, node: Node) -> None:
    """Lower to MINIMUM."""
    attribute = fbs.MinimumAttribute(nan_mode=NanPropagationMode.PROPAGATE)
    _both_ways(Op.MINIMUM, attribute, values, node)


@lowers(aten.mul.Tensor, when=INTEGER, profile=Profile.INT)
@lowers(aten.mul.Tensor, when=FLOAT)
def mul(values: Values, node: Node) -> None:
    """Lower to MUL, of integers above their zero points."""
    pair = Pair(values, node)
    call = pair.call
    operands = pair.names if call.step is None else pair.wide()
    shift = call.graph.constant("no_shift", [1], DType.INT8, b"\0")
    made = call.emit(Op.MUL, fbs.MulAttribute(), [*operands, shift], "product", call.shape)
    first, second = pair.nodes
    scale = call.form(first).scale * call.form(second).scale if call.step else None
    call.done(made, scale)


@lowers(aten.div.Tensor, when=FLOAT)
def div(values: Values, node: Node) -> None:
    """Lower to MUL by the RECIPROCAL."""
    pair = Pair(values, node)
    call, (first, second) = pair.call, pair.names
    shape = call.graph.shape(second)
    inverse = call.emit(Op.RECIPROCAL, fbs.ReciprocalAttribute(), [second], "inverse", shape)
    shift = call.graph.constant("no_shift", [1], DType.INT8, b"\0")
    operands = [first, inverse, shift]
    call.done(call.emit(Op.MUL, fbs.MulAttribute(), operands, "quotient", call.shape))
