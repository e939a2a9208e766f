# SPDX-License-Identifier: BSD-3-Clause
"""``masked_fill(x, m, c)`` -> ``maximum(minimum(x, where(m, c, inf)), where(m, c, -inf))``.

Exact where `x` is a number, and for masks of run time what `nodes/choice.py` does for known ones:
XNNPACK has no bool, so bounds are made outside of the delegate, of the mask's size.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.passes.base import NodePass
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_backend_xnnpack.builder import FLOATS
from etx_backend_xnnpack.nodes.table import TABLE, Work
from etx_backend_xnnpack.quantized import is_quantization

aten = torch.ops.aten
NUMBERS = {aten.scalar_tensor.default: 0, aten.full.default: 1}
BOUNDS = ((aten.minimum.default, math.inf), (aten.maximum.default, -math.inf))


class BoundedChoices(NodePass):
    """Bound what lies between two heavy nodes, as scores of attention do, by what hides it."""

    targets = (aten.masked_fill.Scalar, aten.where.self)

    def __init__(self) -> None:
        self._after: set[Node] = set()
        self._before: set[Node] = set()
        self._made: dict[tuple[Any, ...], Node] = {}

    def apply(self, program: ExportedProgram) -> bool:
        """Find the heavy nodes first."""
        nodes = list(program.graph.nodes)
        for node in nodes:
            if any(_is_heavy(arg) or arg in self._after for arg in node.all_input_nodes):
                self._after.add(node)
        for node in reversed(nodes):
            if any(_is_heavy(user) or user in self._before for user in node.users):
                self._before.add(node)
        return super().apply(program)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Replace a choice between a computed tensor and what does not depend on heavy nodes."""
        if node.meta["val"].dtype not in FLOATS or node not in self._before:
            return None
        mask, x, other, hides = _parts(node)
        if not self._is_computed(x):
            x, other, hides = other, x, not hides
        if not self._is_computed(x) or self._is_computed(other) or self._is_computed(mask):
            return None
        if is_quantization(x) or self.constant(mask) is not None:
            return None
        number = self._number(other)
        if number is None or math.isnan(number) or not _has_dtype(node, x, other):
            return None
        for bound, free in BOUNDS:
            if number != free:
                x = graph.call_function(bound, (x, self._limit(node, mask, other, free, hides)))
                self._after.add(x)
                self._before.add(x)
        found: Node = x
        return found

    def _limit(self, node: Node, mask: Node, other: Any, free: float, hides: bool) -> Node:
        """Return `other` where it hides, and what bounds nothing elsewhere; once each."""
        dtype, graph = node.meta["val"].dtype, node.graph
        key = graph, node.target, mask, other, free, hides, dtype
        if key not in self._made:
            scalar = aten.scalar_tensor.default
            options = {"dtype": dtype}
            number = other
            if not isinstance(other, Node):
                number = graph.call_function(scalar, (float(other),), options)
            nothing = graph.call_function(scalar, (free,), options)
            pair = (number, nothing) if hides else (nothing, number)
            self._made[key] = graph.call_function(aten.where.self, (mask, *pair))
        return self._made[key]

    def _is_computed(self, arg: Any) -> bool:
        return isinstance(arg, Node) and (arg in self._after or _is_heavy(arg))

    def _number(self, other: Any) -> float | None:
        """Return the only number of what is put in place; 0 for a tensor of which none is NaN."""
        if not isinstance(other, Node):
            return float(other)
        if other.target in NUMBERS:
            value: Any = other.args[NUMBERS[other.target]]
            return float(value)
        known = self.constant(other)
        if known is None or known.isnan().any():
            return None
        return float(known) if known.numel() == 1 else 0.0


def _parts(node: Node) -> tuple[Any, Any, Any, bool]:
    """Return mask, two choices, and whether the second is taken where the mask is true."""
    if node.target == aten.where.self:
        mask, first, second = node.args
        return mask, first, second, False
    x, mask, number = node.args
    return mask, x, number, True


def _has_dtype(node: Node, *args: Any) -> bool:
    dtype = node.meta["val"].dtype
    return all(arg.meta["val"].dtype is dtype for arg in args if isinstance(arg, Node))


def _is_heavy(node: Node) -> bool:
    row = TABLE.get(node.target)
    return row is not None and row.work is Work.HEAVY
