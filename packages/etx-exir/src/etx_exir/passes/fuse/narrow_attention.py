# SPDX-License-Identifier: BSD-3-Clause
"""``to(attention(to(q), to(k), to(v)), half)`` -> ``attention(q, k, v)``, of half precision."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import CLONE, TO_COPY, dim_order_of
from etx_exir.ir.ops import EXPAND, PERMUTATIONS, VIEW
from etx_exir.ir.own_ops import ATTENTION
from etx_exir.passes.base import NodePass

HALVES = (torch.float16, torch.bfloat16)
MOVES = (VIEW, EXPAND, *PERMUTATIONS)


class NarrowAttention(NodePass):
    """Leave conversions to the kernel, which reads a cache of half precision as it lies."""

    targets = (TO_COPY,)
    makes = frozenset({ATTENTION})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        dtype = node.meta["val"].dtype
        moved, inner = _moved(node.args[0])
        if inner.target != ATTENTION or dtype not in HALVES:
            return None
        if any(len(each.users) != 1 for each in (inner, *moved)):
            return "the result in float32 is read as well"
        operands = [self._narrow(arg, dtype) for arg in inner.args[:3]]
        if None in operands:
            return f"not all of query, key and value are converted from {dtype}"
        narrow = [self._again(graph, source, moves) for source, moves in operands]  # type: ignore[misc]
        whole = graph.call_function(ATTENTION, (*narrow, *inner.args[3:]))
        self.propagate(whole)
        result = self._again(graph, whole, moved)
        order = list(dim_order_of(node.meta["val"]))
        if order == list(dim_order_of(result.meta["val"])):
            return result
        return graph.call_function(CLONE, (result,), {"dim_order": order})

    def _narrow(self, node: Any, dtype: torch.dtype) -> tuple[Node, list[Node]] | None:
        """Return what was converted from `dtype`, and how it was moved then."""
        moves, cast = _moved(node)
        if cast.target is not TO_COPY or cast.meta["val"].dtype is not torch.float32:
            return None
        source: Any = cast.args[0]
        same = dim_order_of(source.meta["val"]) == dim_order_of(cast.meta["val"])
        return (source, moves) if same and source.meta["val"].dtype is dtype else None

    def _again(self, graph: Graph, source: Node, moves: list[Node]) -> Node:
        """Move `source` as something else was."""
        for move in reversed(moves):
            target: Any = move.target
            source = graph.call_function(target, (source, *move.args[1:]), move.kwargs)
            self.propagate(source)
        return source


def _moved(node: Any) -> tuple[list[Node], Node]:
    """Return the moves of elements that end in `node`, the last first, and what they move."""
    moves = []
    while node.target in MOVES:
        moves.append(node)
        node = node.args[0]
    return moves, node
