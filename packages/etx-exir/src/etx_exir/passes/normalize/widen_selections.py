# SPDX-License-Identifier: BSD-3-Clause
"""``masked_select(x, mask)`` has up to as many elements as ``x`` and ``mask`` broadcast to: torch
counts those of ``x``; ``nms(boxes, scores, t)`` as many as ``boxes``: torch knows no bound."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from math import prod
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from etx_exir.ir.constraints import LARGEST
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.passes.base import Pass

SELECT = torch.ops.aten.masked_select.default
SUPPRESS = "torchvision.nms.default"  # which torch knows only where torchvision is imported


class WidenSelections(Pass):
    """Set the bound of the count, by which memory is planned."""

    def apply(self, program: ExportedProgram) -> bool:
        changed = False
        for module in graph_modules(program.graph_module):
            for node in module.graph.find_nodes(op="call_function", target=SELECT):
                changed |= _bound(node, program, _selected, is_known=False)
            for node in list(module.graph.nodes):
                if str(node.target) == SUPPRESS:
                    changed |= _bound(node, program, _boxes, is_known=True)
        return changed


def _bound(
    node: Node, program: ExportedProgram, count_of: Callable[[Node, Any], Any], is_known: bool
) -> bool:
    """Set the most elements a result has; what torch knows of it, or a check says, may be less."""
    count: Any = node.meta["val"].shape[0]
    if not isinstance(count, torch.SymInt) or not count.node.expr.is_symbol:
        return False
    symbol, known = count.node.expr, count.node.shape_env.var_to_range
    ranges = {**known, **program.range_constraints}
    most, upper = count_of(node, ranges), ranges[symbol].upper
    is_enough = bool(upper <= most) if is_known else bool(most <= upper)
    if bool(upper == most) or (is_enough and bool(upper <= LARGEST)):
        return False
    known[symbol] = program.range_constraints[symbol] = ValueRanges(ranges[symbol].lower, most)
    return True


def _selected(node: Node, ranges: Any) -> Any:
    shapes = [reversed(argument.meta["val"].shape) for argument in node.args]  # type: ignore[union-attr]
    sizes = [b if a == 1 else a for a, b in zip_longest(*shapes, fillvalue=1)]
    return prod(_upper(size, ranges) for size in sizes)


def _boxes(node: Node, ranges: Any) -> Any:
    return _upper(node.args[0].meta["val"].shape[0], ranges)  # type: ignore[union-attr]


def _upper(size: Any, ranges: Any) -> Any:
    return bound_sympy(size.node.expr, ranges).upper if isinstance(size, torch.SymInt) else size
