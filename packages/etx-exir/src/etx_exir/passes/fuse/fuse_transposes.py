# SPDX-License-Identifier: BSD-3-Clause
"""``bmm(x, permute(y, [0, 2, 1]))`` -> ``bmm_nt(x, y)``, also where a view lies between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import same_size, sizes
from etx_exir.ir.ops import PERMUTATIONS, PERMUTE, VIEW, permutation
from etx_exir.ir.own_ops import BMM_NT
from etx_exir.passes.base import NodePass

BMM = torch.ops.aten.bmm.default


class FuseTransposes(NodePass):
    """Multiply by rows as they lie, such as those of a cache of keys: no copy turns them."""

    targets = (BMM,)
    makes = frozenset({BMM_NT})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        left, columns = node.args
        assert isinstance(columns, Node)
        turned = Turned.of(columns)
        if turned is None or not turned.moves_rows:
            return None
        if any(len(each.users) != 1 for each in {columns, turned.node}):
            return "another operator reads the transposed matrices"
        return graph.call_function(BMM_NT, (left, turned.rows(self, graph)))


@dataclass(frozen=True)
class Turned:
    """Columns (N, E, L) that a permutation makes of rows, a view of it where `columns` is one."""

    columns: Node
    node: Node
    order: list[int]
    """Of the permuted dimensions, without the exchange of the last two that are not 1."""
    kept: list[int]
    """Those of `order` that are not 1."""

    @classmethod
    def of(cls, columns: Node) -> Turned | None:
        node = columns.args[0] if columns.target is VIEW else columns
        if not isinstance(node, Node) or node.target not in PERMUTATIONS:
            return None
        parts, order = node.meta["val"].shape, permutation(node)
        places = [place for place, extent in enumerate(parts) if not same_size(extent, 1)]
        whole = columns.meta["val"].shape[-2:]
        if len(places) < 2:
            return None
        a, b = places[-2:]
        if not (same_size(whole[0], parts[a]) and same_size(whole[1], parts[b])):
            return None
        order[a], order[b] = order[b], order[a]
        return cls(columns, node, order, [order[place] for place in places])

    @property
    def moves_rows(self) -> bool:
        """Whether a row has its numbers one after the other in what is permuted."""
        return self.kept[-1] == max(self.kept)

    def rows(self, item: NodePass, graph: Graph) -> Node:
        """Add what makes the rows (N, L, E), and return it."""
        rows: Any = self.node.args[0]
        if self.kept != sorted(self.kept):
            rows = item.call(graph, PERMUTE, rows, self.order)
        given: Any = self.columns.args[1]
        if self.columns is not self.node:
            *lead, width, count = given
        elif self.kept == sorted(self.kept) and self.order != sorted(self.order):
            *lead, width, count = sizes(graph, self.columns)
        else:
            return rows  # type: ignore[no-any-return]
        return item.call(graph, VIEW, rows, [*lead, count, width])
