# SPDX-License-Identifier: BSD-3-Clause
"""Operators of two tensors: in int32 between two RESCALEs, or in floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look, affine
from etx_backend_arm.tosa import NanPropagationMode, Op, fbs
from etx_backend_arm.values import Total, Values

aten = torch.ops.aten
SUMS = (aten.add.Tensor, aten.sub.Tensor)
HEADROOM, WIDE_HEADROOM = 2**20, 2**14
"""Sums are of multiples of a step of the larger scale, this small: of int8 and of int16."""
LARGEST = 2.0**31 - 1
MOST_RESCALED = 2.0**30 * 255 / 256
"""RESCALE is defined for results below this (TOSA 1.0, apply_scale_32: by its value and shift)."""


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


def adds_something(node: Node, look: Look) -> str | None:
    """The factor of the second operand is not zero."""
    return f"{node.name} has alpha=0" if arguments(node)[2] == 0 else None


class Pair:
    """Both operands in one layout and of one rank, and the shape of the result."""

    def __init__(self, values: Values, node: Node) -> None:
        self.call = Call(values, node)
        self.nodes = [each for each in node.args[:2] if isinstance(each, Node)]
        rank = node.meta["val"].dim()
        if any(each.meta["val"].dim() != rank for each in self.nodes):
            self.call.layout = "nchw"
        self.names = [self._of_rank(each, rank) for each in self.nodes]
        alpha = float(arguments(node)[2]) if node.target in SUMS else 1.0
        self.factors = [1.0, abs(alpha)]
        """Of the operands, in a sum."""

    def _of_rank(self, node: Node, rank: int) -> str:
        name = self.call.get(node)
        sizes = self.call.graph.shape(name)
        if len(sizes) == rank:
            return name
        return self.call.reshape(name, [1] * (rank - len(sizes)) + sizes, f"{node.name}_of_rank")

    def scales(self) -> list[float]:
        """Return what a step of each operand means in the result."""
        return [
            self.call.form(n).scale * by for n, by in zip(self.nodes, self.factors, strict=True)
        ]

    def reach(self, index: int, unit: float) -> float:
        """Return how far an operand can be from zero, in multiples of ``unit``."""
        form = self.call.form(self.nodes[index])
        return (form.high - form.low) * self.scales()[index] / unit

    def total(self) -> tuple[Node, Total] | None:
        """Return an operand that is a sum, where it is still in int32 and the other fits it."""
        values, shape = self.call.values, self.call.shape
        for i, node in enumerate(self.nodes):
            found, other = values.totals.get(self.call.source(node)), 1 - i
            if found is None or self.nodes[other] is node or found.layout != self.call.layout:
                continue
            reach = self.reach(other, found.unit)
            if self.factors[i] != 1 or reach >= MOST_RESCALED:
                continue
            most = found.most + reach
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
            ratio = 1.0 if unit is None else self.scales()[i] / unit
            made.append(self.call.wide(name, ratio, self.call.form(node).zero_point, f"wide_{i}"))
        return made

    def floats(self) -> list[str]:
        """Return both as floats, the second times its factor.

        PyTorch rounds the factor to the operands' type, and then only the sum.
        """
        if self.factors[1] == 1:
            return self.names
        call = self.call
        factor = float(torch.tensor(self.factors[1]).to(call.node.meta["val"].dtype))
        first, second = (call.as_float32(each, f"wider_{i}") for i, each in enumerate(self.names))
        shape = call.graph.shape(second)
        times = call.number(factor, len(shape), second)
        return [first, call.graph.multiply(second, times, call.fresh("times"), shape)]


def _both_ways(op: Op, attribute: Any, values: Values, node: Node) -> None:
    pair = Pair(values, node)
    call = pair.call
    if call.step is None:
        call.done(call.emit(op, attribute, pair.floats(), "made", call.shape))
        return
    headroom = WIDE_HEADROOM if call.step.form.is_wide else HEADROOM
    unit = 2 * max(pair.scales()) / headroom
    is_sum = op in (Op.ADD, Op.SUB)
    found = pair.total() if is_sum else None
    most = sum(pair.reach(i, unit) for i in range(2))
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
FLOAT = (floating, static_shape, two_tensors)


@lowers(aten.add.Tensor, when=(*INTEGER, adds_something), profile=Profile.INT)
@lowers(aten.add.Tensor, when=FLOAT)
@lowers(aten.sub.Tensor, when=(*INTEGER, adds_something), profile=Profile.INT)
@lowers(aten.sub.Tensor, when=FLOAT)
def total(values: Values, node: Node) -> None:
    """Lower to ADD or SUB, of a multiple of the second operand where it has a factor."""
    is_sum = (node.target is aten.add.Tensor) != (float(arguments(node)[2]) < 0)
    if is_sum:
        _both_ways(Op.ADD, fbs.AddAttribute(), values, node)
    else:
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
    left, right = pair.names if call.step is None else pair.wide()
    made = call.graph.multiply(left, right, call.fresh("product"), call.shape)
    first, second = pair.nodes
    scale = call.form(first).scale * call.form(second).scale if call.step else None
    call.done(made, scale)


@lowers(aten.div.Tensor, when=FLOAT)
def div(values: Values, node: Node) -> None:
    """Lower to MUL by the RECIPROCAL."""
    pair = Pair(values, node)
    call = pair.call
    first, second = (call.as_float32(each, f"wider_{i}") for i, each in enumerate(pair.names))
    shape = call.graph.shape(second)
    inverse = call.emit(Op.RECIPROCAL, fbs.ReciprocalAttribute(), [second], "inverse", shape)
    call.done(call.graph.multiply(first, inverse, call.fresh("quotient"), call.shape))
