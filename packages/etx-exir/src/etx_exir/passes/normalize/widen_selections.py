# SPDX-License-Identifier: BSD-3-Clause
"""``masked_select(x, mask)`` has up to as many elements as ``x`` and ``mask`` broadcast to: torch
bounds it by only those of ``x``."""

from __future__ import annotations

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


class WidenSelections(Pass):
    """Raise the bound of the count, by which memory is planned."""

    def apply(self, program: ExportedProgram) -> bool:
        changed = False
        for module in graph_modules(program.graph_module):
            for node in module.graph.find_nodes(op="call_function", target=SELECT):
                changed |= _widen(node, program)
        return changed


def _widen(node: Node, program: ExportedProgram) -> bool:
    count: Any = node.meta["val"].shape[0]
    if not isinstance(count, torch.SymInt) or not count.node.expr.is_symbol:
        return False
    symbol, known = count.node.expr, count.node.shape_env.var_to_range
    ranges = {**known, **program.range_constraints}
    shapes = [reversed(argument.meta["val"].shape) for argument in node.args]  # type: ignore[union-attr]
    sizes = [b if a == 1 else a for a, b in zip_longest(*shapes, fillvalue=1)]
    most = prod(_upper(size, ranges) for size in sizes)
    upper = ranges[symbol].upper
    if bool(most <= upper) and bool(upper <= LARGEST):
        return False
    known[symbol] = program.range_constraints[symbol] = ValueRanges(ranges[symbol].lower, most)
    return True


def _upper(size: Any, ranges: Any) -> Any:
    return bound_sympy(size.node.expr, ranges).upper if isinstance(size, torch.SymInt) else size
