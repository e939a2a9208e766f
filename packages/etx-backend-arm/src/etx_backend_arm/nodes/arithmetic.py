# SPDX-License-Identifier: BSD-3-Clause
"""Sums, differences and products of two activations, in int32 between two RESCALEs."""

from __future__ import annotations

import torch
from torch.fx import Node

from etx_backend_arm.nodes.table import Profile, arguments, lowers, quantized, static_shape
from etx_backend_arm.quantized import Affine, Look, Step
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
HEADROOM = 2**20
"""Sums are of multiples of a step of the larger scale, this small."""


def two_tensors(node: Node, look: Look) -> str | None:
    """Both operands are activations of one rank."""
    first, second = node.args[:2]
    if not isinstance(first, Node) or not isinstance(second, Node):
        return f"{node.name} has a number for an operand, its lowering takes two tensors"
    if look(first) is not None or look(second) is not None:
        return f"{node.name} has a constant for an operand, its lowering takes activations"
    ranks = [each.meta["val"].dim() for each in (first, second)]
    if ranks[0] != ranks[1]:
        return f"{node.name} has operands of ranks {ranks}, TOSA takes one rank"
    return None


def plain_sum(node: Node, look: Look) -> str | None:
    """The second operand has no factor."""
    alpha = arguments(node)[2]
    return None if alpha == 1 else f"{node.name} has alpha={alpha}"


def operands(values: Values, node: Node, step: Step) -> tuple[list[str], list[Affine], str]:
    """Return both operands in one layout, what their integers mean, and the layout."""
    by_node = dict(zip(step.sources, step.forms, strict=True))
    sources = [arg.args[0] for arg in node.args[:2] if isinstance(arg, Node)]
    nodes = [source for source in sources if isinstance(source, Node)]
    layout = values.layout(nodes[0])
    names = [values.get(source, layout) for source in nodes]
    return names, [by_node[source] for source in nodes], layout


def broadcast(values: Values, names: list[str]) -> list[int]:
    """Return the shape of both operands together."""
    shapes = (values.graph.shape(name) for name in names)
    return [max(sizes) for sizes in zip(*shapes, strict=True)]


def _sum(values: Values, node: Node, op: Op) -> None:
    step, graph = values.step(node), values.graph
    names, forms, layout = operands(values, node, step)
    unit = 2 * max(form.scale for form in forms) / HEADROOM
    wide = [
        graph.rescale(
            name, [form.scale / unit], (form.zero_point, 0), f"{node.name}_wide_{i}", DType.INT32
        )
        for i, (name, form) in enumerate(zip(names, forms, strict=True))
    ]
    attribute = fbs.AddAttribute() if op is Op.ADD else fbs.SubAttribute()
    total = f"{node.name}_total"
    graph.operator(op, attribute, wide, total, broadcast(values, names), DType.INT32)
    values.requantize(step, total, [unit], layout)


CHECKS = (quantized, static_shape, two_tensors)


@lowers(aten.add.Tensor, when=(*CHECKS, plain_sum), profile=Profile.INT)
def add(values: Values, node: Node) -> None:
    """Lower to ADD."""
    _sum(values, node, Op.ADD)


@lowers(aten.sub.Tensor, when=(*CHECKS, plain_sum), profile=Profile.INT)
def sub(values: Values, node: Node) -> None:
    """Lower to SUB."""
    _sum(values, node, Op.SUB)


@lowers(aten.mul.Tensor, when=CHECKS, profile=Profile.INT)
def mul(values: Values, node: Node) -> None:
    """Lower to MUL of what is above the zero points."""
    step, graph = values.step(node), values.graph
    names, forms, layout = operands(values, node, step)
    wide = [
        graph.rescale(name, [1.0], (form.zero_point, 0), f"{node.name}_wide_{i}", DType.INT32)
        for i, (name, form) in enumerate(zip(names, forms, strict=True))
    ]
    wide.append(graph.constant(f"{node.name}_shift", [1], DType.INT8, b"\0"))
    total = f"{node.name}_total"
    shape = broadcast(values, names)
    graph.operator(Op.MUL, fbs.MulAttribute(), wide, total, shape, DType.INT32)
    values.requantize(step, total, [forms[0].scale * forms[1].scale], layout)
