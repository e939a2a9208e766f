# SPDX-License-Identifier: BSD-3-Clause
"""Partitions that look like one of several patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

from etx_exir.delegation.backend import DelegationSpec
from etx_exir.lower.lower import lower
from etx_exir.partitioners.base import GroupPartitioner
from etx_exir.partitioners.grouping import group_nodes

__all__ = ["PatternPartitioner", "pattern_graph"]


class _Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def pattern_graph(
    pattern: nn.Module | Callable[..., Any], example_inputs: tuple[Any, ...]
) -> Graph:
    """Return the Edge dialect's graph of a module or function; its inputs match anything."""
    module = pattern if isinstance(pattern, nn.Module) else _Calls(pattern)
    exported = torch.export.export(module.eval(), example_inputs)
    graph: Graph = lower(exported).graph
    return graph


class PatternPartitioner(GroupPartitioner):
    """Delegates what matches one of `patterns`, graphs that `pattern_graph` makes.

    Numbers must be equal unless `ignore_literals`. Each match is a partition; with `merge`,
    neighbours become one. Other options: those of `GroupPartitioner`.
    """

    def __init__(
        self,
        spec: DelegationSpec,
        patterns: Sequence[Graph],
        *,
        ignore_literals: bool = False,
        merge: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(spec, **options)
        self.patterns = list(patterns)
        self.ignore_literals = ignore_literals
        self.merge = merge

    def groups(self, module: GraphModule) -> Iterable[list[Node]]:
        """Return the matches that can be taken whole."""
        matches = self._matches(module.graph)
        while True:
            groups = group_nodes(module.graph, lambda _: False, matches, join=self.merge)
            place = {node: index for index, group in enumerate(groups) for node in group}
            whole = [match for match in matches if len({place[node] for node in match}) == 1]
            if len(whole) == len(matches):
                return groups
            matches = whole

    def refusal(self, node: Node) -> str | None:
        """Return that nothing matched."""
        known = {n.target for graph in self.patterns for n in graph.nodes}
        if node.target in known:
            return "what surrounds it matches no pattern"
        return f"{node.target} is in no pattern"

    def _matches(self, graph: Graph) -> list[set[Node]]:
        taken: set[Node] = set()
        found = []
        for pattern in self.patterns:
            matcher = SubgraphMatcher(pattern, ignore_literals=self.ignore_literals)
            for match in matcher.match(graph):
                nodes = {
                    node
                    for inner, node in match.nodes_map.items()
                    if inner.op == "call_function" and isinstance(node, Node)
                }
                if nodes.isdisjoint(taken):
                    taken |= nodes
                    found.append(nodes)
        return found
