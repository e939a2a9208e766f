# SPDX-License-Identifier: BSD-3-Clause
"""Channels last and back: the integer operators take images as (N, H, W, C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node

from etx_exir.ir.constants import Constants
from etx_exir.ir.ops import PERMUTATIONS, PERMUTE, permutation
from etx_exir.ir.provenance import DECLINED


def last(rank: int) -> list[int]:
    """Return the permutation that puts the channels, dimension 1, last."""
    return [0, *range(2, rank), 1]


def first(rank: int) -> list[int]:
    """Return the permutation that undoes `last`."""
    return [0, rank - 1, *range(1, rank - 1)]


def is_image(node: Node) -> bool:
    """Tell whether `node` is an image whose channels lie last in memory: it was put so here."""
    rank = node.meta["val"].dim()
    return rank > 2 and node.target in PERMUTATIONS and permutation(node) == first(rank)


class Rewriter(Protocol):
    """What a pass lends: its constants, and the values of the nodes that it adds."""

    constants: Constants
    mode: FakeTensorMode

    def propagate(self, node: Node) -> None:
        """Compute the value of `node`."""


class Layouts:
    """Adds the permutations that integer operators need, and sees through those there are."""

    def __init__(self, owner: Rewriter, graph: Graph) -> None:
        self._owner = owner
        self.graph = graph
        self.origin: Node | None = None
        """The operator that the calls take the place of: they come from its source line."""

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add a call and compute its value."""
        node = self.graph.call_function(target, args, kwargs)
        if self.origin is not None:
            kept = self.origin.meta.items()
            node.meta |= {key: item for key, item in kept if key not in ("val", DECLINED)}
        self._owner.propagate(node)
        return node

    def constant(self, tensor: Any, name: str) -> Node:
        """Store a constant."""
        return self._owner.constants.add(tensor, name, self._owner.mode)

    def channels_last(self, node: Node) -> Node:
        """Return `node` (N, C, ...) as (N, ..., C)."""
        if is_image(node):
            source = node.args[0]
            assert isinstance(source, Node)
            return source
        return self.call(PERMUTE, node, last(node.meta["val"].dim()))

    def channels_first(self, node: Node) -> Node:
        """Return `node` (N, ..., C) as (N, C, ...)."""
        return self.call(PERMUTE, node, first(node.meta["val"].dim()))

    def common(self, nodes: Sequence[Node]) -> tuple[list[Node], bool]:
        """Return `nodes` for an elementwise operator, and whether they are channels last now."""
        ranks = {node.meta["val"].dim() for node in nodes}
        if len(ranks) > 1 or not any(map(is_image, nodes)):
            return list(nodes), False
        return [self.channels_last(node) for node in nodes], True
