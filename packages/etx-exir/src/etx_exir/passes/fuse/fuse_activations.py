# SPDX-License-Identifier: BSD-3-Clause
"""``x * sigmoid(x)`` -> ``silu(x)``, and ``hardsigmoid`` and ``hardswish`` of their parts."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import dim_order_of
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

SIGMOID = aten.sigmoid.default
SILU = aten.silu.default
HARDSIGMOID = aten.hardsigmoid.default
HARDSWISH = aten.hardswish.default
OF_GATE = {SIGMOID: SILU, HARDSIGMOID: HARDSWISH}
"""The function that multiplies its argument with the gate of it."""
MUL = aten.mul.Tensor
ADD, RSUB = SHIFTS = (aten.add.Scalar, aten.rsub.Scalar)
CLAMPS = (aten.clamp.default, aten.hardtanh.default)
SIXTH = 1.0 / 6.0


class FuseActivations(NodePass):
    """Read and write the elements once."""

    targets = (*CLAMPS, aten.div.Scalar, aten.mul.Scalar, MUL)
    makes = frozenset({SILU, HARDSIGMOID, HARDSWISH})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        if not node.meta["val"].dtype.is_floating_point:
            return None
        source = _hard(node)
        if source is not None:
            return graph.call_function(HARDSIGMOID, (source,))
        source = _hard_product(node)
        if source is not None:
            return graph.call_function(HARDSWISH, (source,))
        found = _gated(node) if node.target is MUL else None
        if found is None:
            return None
        gate, source = found
        if len(gate.users) != 1:
            return "the gate is read as well"
        return graph.call_function(OF_GATE[gate.target], (source,))


def _hard(node: Node) -> Node | None:
    """Return x of ``clamp(0.5 + x / 6, 0, 1)`` or ``clamp(x + 3, 0, 6) / 6``."""
    source = _clamped(node, RSUB, (0.5, -SIXTH), 1.0)
    if source is None and _is_sixth(node):
        source = _clamped(_own(node.args[0]), ADD, (3,), 6.0)
    return source if source is not None and _is_like(source, node) else None


def _hard_product(node: Node) -> Node | None:
    """Return x of ``x * clamp(x + 3, 0, 6) / 6``."""
    product = _own(node.args[0]) if _is_sixth(node) else None
    if product is None or product.target is not MUL:
        return None
    for gate, source in _orders(product):
        if _clamped(_own(gate), ADD, (3,), 6.0) is source:
            return source if _is_like(source, node) else None
    return None


def _orders(product: Node) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    a, b = product.args
    return (a, b), (b, a)


def _is_sixth(node: Node) -> bool:
    factors: dict[Any, float] = {aten.div.Scalar: 6, aten.mul.Scalar: SIXTH}
    factor = factors.get(node.target)
    return factor is not None and bool(node.args[1] == factor)


def _own(node: Any) -> Node | None:
    """Return a node that nothing else reads."""
    return node if isinstance(node, Node) and len(node.users) == 1 else None


def _clamped(node: Node | None, shift: Any, by: tuple[float, ...], most: float) -> Node | None:
    """Return what `shift` shifts `by` before it is clamped to 0 and `most`."""
    if node is None or node.target not in CLAMPS or list(node.args[1:]) != [0, most]:
        return None
    shifted = _own(node.args[0])
    if shifted is None or shifted.target is not shift:
        return None
    if shifted.args[1:] != by or shifted.kwargs:
        return None
    return shifted.args[0]  # type: ignore[return-value]


def _gated(node: Node) -> tuple[Any, Any] | None:
    """Return the gate and what it is of, in their product with each other."""
    for gate, source in _orders(node):
        if isinstance(gate, Node) and gate.target in OF_GATE and gate.args[0] is source:
            return (gate, source) if _is_like(source, node) else None
    return None


def _is_like(source: Any, node: Node) -> bool:
    x, y = source.meta["val"], node.meta["val"]
    return x.dtype is y.dtype and dim_order_of(x) == dim_order_of(y)
