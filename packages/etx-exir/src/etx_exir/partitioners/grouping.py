# SPDX-License-Identifier: BSD-3-Clause
"""Supported nodes in groups as large as they can be without a cycle between groups.

Groups A and B may become one when no path leads from one to the other through a third.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence

from torch.fx import Graph, Node

__all__ = ["group_nodes"]


class _Quotient:
    """The graph whose vertices are groups and single nodes; sets of them are bits of integers.

    `above[v]` holds what `v` depends on. A vertex that was merged away keeps its bit, which
    `mask[v]` of the vertex it became includes.
    """

    def __init__(self) -> None:
        self.above: list[int] = []
        self.mask: list[int] = []
        self.parent: list[int] = []
        self.alive: list[int] = []

    def add(self, above: int) -> int:
        index = len(self.above)
        self.above.append(above)
        self.mask.append(1 << index)
        self.parent.append(index)
        self.alive.append(index)
        return index

    def find(self, index: int) -> int:
        while self.parent[index] != index:
            index = self.parent[index]
        return index

    def closure(self, index: int) -> int:
        return self.above[index] | self.mask[index]

    def may_merge(self, a: int, b: int) -> bool:
        """Tell whether every path between `a` and `b` is a direct edge."""
        return not (self._between(a, b) or self._between(b, a))

    def _between(self, source: int, sink: int) -> bool:
        if not self.above[sink] & self.mask[source]:
            return False
        candidates = self.above[sink] & ~self.mask[source] & ~self.mask[sink]
        return any(self.above[v] & self.mask[source] for v in self.alive if candidates >> v & 1)

    def merge(self, a: int, b: int) -> int:
        """Make `b` a part of `a`; all that depends on either depends on what both need."""
        mask = self.mask[a] | self.mask[b]
        above = (self.above[a] | self.above[b]) & ~mask
        self.mask[a], self.above[a], self.parent[b] = mask, above, a
        self.alive.remove(b)
        for v in self.alive:
            if v != a and self.above[v] & mask:
                self.above[v] |= mask | above
        return a


def group_nodes(
    graph: Graph,
    is_supported: Callable[[Node], bool],
    together: Sequence[Collection[Node]] = (),
    *,
    join: bool = True,
    fits: Callable[[Node, Node], bool] | None = None,
) -> list[list[Node]]:
    """Return groups of supported nodes, each connected, in the order of their first nodes.

    What picks a result of a node (`getitem`) goes with it. The nodes of each item of `together`
    are supported, and begin in one group if no path leaves it and returns; without `join`, groups
    grow no further than that. `fits(source, node)` says whether an edge may lie inside a group.
    """
    quotient = _Quotient()
    vertex: dict[Node, int] = {}
    supported: set[Node] = set()
    bundles = {node: index for index, nodes in enumerate(together) for node in nodes}
    begun: dict[int, int] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        sources = {quotient.find(vertex[arg]) for arg in node.all_input_nodes if arg in vertex}
        above = 0
        for source in sources:
            above |= quotient.closure(source)
        vertex[node] = current = quotient.add(above)
        follows = node.target is operator.getitem and node.all_input_nodes[0] in supported
        if not (follows or node in bundles or is_supported(node)):
            continue
        supported.add(node)
        joined = [
            vertex[arg]
            for arg in node.all_input_nodes
            if arg in supported
            and (join or node not in bundles or bundles.get(arg) == bundles[node])
            and (follows or fits is None or fits(arg, node))
        ]
        if node in bundles and bundles[node] in begun:
            joined.insert(0, begun[bundles[node]])
        for other in joined:
            other, current = quotient.find(other), quotient.find(current)
            if other != current and quotient.may_merge(other, current):
                current = quotient.merge(other, current)
        if node in bundles:
            begun[bundles[node]] = current
    place = {node: quotient.find(vertex[node]) for node in graph.nodes if node in supported}
    for node in reversed(place):
        users = {place.get(user) if _are_one(bundles, node, user) else None for user in node.users}
        if len(users) == 1 and None not in users:
            (place[node],) = users  # type: ignore[assignment]
    groups: dict[int, list[Node]] = {}
    for node, index in place.items():
        groups.setdefault(index, []).append(node)
    return list(groups.values())


def _are_one(bundles: dict[Node, int], node: Node, user: Node) -> bool:
    """Tell whether both are of one bundle: then `node` goes where its only reader went."""
    return node in bundles and bundles.get(user) == bundles[node]
