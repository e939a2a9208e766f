# SPDX-License-Identifier: BSD-3-Clause
"""``f(constants)`` -> the constant ``f(constants)``, where the file does not grow for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from etx_exir.analysis.constant_expressions import Expression, expressions_of, to_store
from etx_exir.ir import dim_order
from etx_exir.ir.constants import Constants, fake_mode_of
from etx_exir.passes.base import NodePass, Pass, name_outputs

EMPTY = frozenset(
    {
        dim_order.EMPTY,
        torch.ops.aten.empty.memory_format,
        torch.ops.aten.empty_like.default,
        torch.ops.aten.empty_permuted.default,
        torch.ops.aten.empty_strided.default,
    }
)
FULL = torch.ops.aten.full.default


class FoldConstants(Pass):
    """Compute ahead of time what depends only on constants, as long as the file gets no larger.

    Constants that others read, or other methods of the file, stay in it whatever is folded, and
    an instruction takes room too. An int8 weight that becomes float32 becomes so at run time.
    Memory that nothing wrote is zero.
    """

    def apply(self, program: ExportedProgram) -> bool:
        return self._fold([program])[0]

    def change_all(self, programs: Sequence[ExportedProgram]) -> list[bool]:
        """Fold the methods of a file together: they share their constants."""
        changed = self._fold(programs)
        for program, did in zip(programs, changed, strict=True):
            if did:
                name_outputs(program)
        return changed

    def choose(self, items: Sequence[Expression]) -> set[Node]:
        """Return the nodes to replace by constants."""
        return to_store(items)

    def _fold(self, programs: Sequence[ExportedProgram]) -> list[bool]:
        changed = [_ClearEmpty().apply(program) for program in programs]
        again = True
        while again:
            held = [Constants(program) for program in programs]
            found = [expressions_of(constants, len(held) == 1) for constants in held]
            chosen = self.choose([item for items in found for item in items])
            did = [_store(*pair, chosen) for pair in zip(held, found, strict=True)]
            changed = [a or b for a, b in zip(changed, did, strict=True)]
            # What was folded here may be all that a branch or body computes with.
            again = any(did)
        return changed


class _ClearEmpty(NodePass):
    """``empty`` -> ``full`` of zeros."""

    def calls(self, graph: Graph) -> list[Node]:
        return [node for node in graph.nodes if node.target in EMPTY]

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        value = node.meta["val"]
        if any(not isinstance(n, int) for n in value.shape) or not value.is_contiguous():
            return None
        return graph.call_function(FULL, (list(value.shape), 0), {"dtype": value.dtype})


def _store(constants: Constants, items: Sequence[Expression], chosen: set[Node]) -> bool:
    """Replace those of `items` that are chosen by constants."""
    results = [item for item in items if item.node in chosen]
    mode = fake_mode_of(constants.program)
    values: dict[Node, Any] = {item.node: item.value for item in items if item.is_leaf}
    stored = []
    for item in results:
        try:
            stored.append((item.node, _compute(item.node, values), _name(item, constants)))
        except (RuntimeError, IndexError, ValueError):
            # What eager refuses is refused by who runs the program.
            continue
    for node, value, name in stored:
        constants.graph = node.graph
        node.replace_all_uses_with(constants.add(value, name, mode))
    for graph in dict.fromkeys(node.graph for node, _, _ in stored):
        graph.eliminate_dead_code()
    return bool(stored)


def _compute(node: Node, values: dict[Node, Any]) -> Any:
    pending = [node]
    while pending:
        top = pending[-1]
        missing = [arg for arg in top.all_input_nodes if arg not in values]
        if missing:
            pending += missing
            continue
        pending.pop()
        if top not in values:
            args, kwargs = map_arg((top.args, top.kwargs), values.__getitem__)
            with torch.no_grad():
                target: Any = top.target
                value = target(*args, **kwargs)
            values[top] = value.zero_() if target in EMPTY else value
    value = values[node]
    return value.contiguous() if isinstance(value, Tensor) else value


def _name(item: Expression, constants: Constants) -> str:
    constants.graph = item.node.graph
    if len(item.leaves) != 1:
        return item.node.name
    return f"{constants.name(next(iter(item.leaves)))}_{item.node.name}"
