# SPDX-License-Identifier: BSD-3-Clause
"""``permute(f(permute(x, p), permute(y, p)), q)`` -> ``f(x, y)`` for elementwise ``f``, where
``q`` undoes ``p``; also where a permutation of each operand is left but there are fewer of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.constant_expressions import INSTRUCTION_BYTES
from etx_exir.ir.dim_order import CLONE, TO_COPY, dim_order_of
from etx_exir.ir.ops import PERMUTATIONS, PERMUTE, is_pointwise, permutation
from etx_exir.passes.base import NodePass


class MovePermutes(NodePass):
    """Move a permutation up through the elementwise operators that only it reads.

    Done where the permutations that this removes are more than those it adds. Constants are
    permuted ahead of time.
    """

    targets = PERMUTATIONS
    repeats = True

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        top = node.args[0]
        if not isinstance(top, Node) or not _moves(top):
            return None
        region = _region(top)
        leaves = dict.fromkeys(
            arg for inner in region for arg in inner.all_input_nodes if arg not in region
        )
        order = permutation(node)
        reason = self._obstacle(leaves, region, order)
        if reason is not None:
            return reason if any(leaf.target in PERMUTATIONS for leaf in leaves) else None
        moved = {leaf: self._permuted(leaf, order, graph) for leaf in leaves}
        for inner in sorted(region):
            moved[inner] = _copy(inner, moved, order, graph)
        return moved[top]

    def _obstacle(
        self, leaves: Iterable[Node], region: dict[Node, None], order: list[int]
    ) -> str | None:
        if any(self._unaligned(leaf, region, len(order)) for leaf in leaves):
            return "an operand has fewer dimensions, another layout, or other readers"
        if sum(self._cost(leaf, region, order) for leaf in leaves) > 0:
            return "no fewer permutations would be left"
        return None

    def _unaligned(self, leaf: Node, region: dict[Node, None], rank: int) -> bool:
        """Whether a permutation cannot move up to `leaf`: it has fewer dimensions or a layout."""
        value = self.constant(leaf)
        if value is not None:
            others = set(self.constants.readers(leaf)) - region.keys()
            return value.nbytes > INSTRUCTION_BYTES and bool(
                others or self.constants.is_shared(leaf)
            )
        if _plain(leaf):
            return False
        source = leaf.all_input_nodes[0] if leaf.target in PERMUTATIONS else leaf
        return leaf.meta["val"].dim() != rank or not _contiguous(source)

    def _cost(self, leaf: Node, region: dict[Node, None], order: Sequence[int]) -> int:
        """Count permutations that are added for `leaf`, less those that vanish with it."""
        if _plain(leaf) or self.constant(leaf) is not None:
            return 0
        if leaf.target not in PERMUTATIONS:
            return 1
        gone = all(user in region for user in leaf.users)
        return (not _undoes(order, permutation(leaf))) - gone

    def _permuted(self, leaf: Node, order: list[int], graph: Graph) -> Node:
        if _plain(leaf):
            return leaf
        source, composed = leaf, order
        value = self.constant(leaf)
        if value is not None:
            lifted = value.reshape([1] * (len(order) - value.dim()) + list(value.shape))
            name = f"{self.constants.name(leaf)}_permuted"
            return self.constants.add(lifted.permute(order).contiguous(), name, self.mode)
        if leaf.target in PERMUTATIONS:
            inner = permutation(leaf)
            composed = [inner[dim] for dim in order]
            source = leaf.all_input_nodes[0]
            if composed == list(range(len(order))):
                return source
        call = graph.call_function(PERMUTE, (source, composed))
        self.propagate(call)
        return call


def _moves(node: Node) -> bool:
    if node.op != "call_function" or not is_pointwise(node.target) or len(node.users) != 1:
        return False
    return _contiguous(node)


def _contiguous(node: Node) -> bool:
    value = node.meta["val"]
    return dim_order_of(value) == tuple(range(value.dim()))


def _region(top: Node) -> dict[Node, None]:
    """Return the tree of elementwise operators that end only in `top` and have its rank."""
    region: dict[Node, None] = {}
    pending = [top]
    while pending:
        node = pending.pop()
        region[node] = None
        pending += [
            arg
            for arg in node.all_input_nodes
            if _moves(arg) and arg.meta["val"].dim() == top.meta["val"].dim()
        ]
    return region


def _plain(node: Node) -> bool:
    """Whether `node` is a number, or a tensor without dimensions."""
    value = node.meta["val"]
    return not isinstance(value, torch.Tensor) or value.dim() == 0


def _undoes(order: Sequence[int], inner: Sequence[int]) -> bool:
    return [inner[dim] for dim in order] == list(range(len(order)))


def _copy(node: Node, moved: dict[Node, Node], order: Sequence[int], graph: Graph) -> Node:
    copy = graph.node_copy(node, lambda arg: moved[arg])
    copy.meta = {key: item for key, item in node.meta.items() if key != "val"}
    if node.target in (CLONE, TO_COPY):
        copy.kwargs = {**copy.kwargs, "dim_order": list(range(len(order)))}
    return copy
