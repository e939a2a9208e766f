# SPDX-License-Identifier: BSD-3-Clause
"""``view(view(x, _), shape)`` -> ``view(x, shape)``, ``permute(permute(x, p), q)`` ->
``permute(x, p[q])``, a permutation that moves only sizes of one -> ``view``."""

from __future__ import annotations

from torch.fx import Graph, Node

from etx_exir.analysis.shapes import static_shape
from etx_exir.ir.ops import PERMUTATIONS, PERMUTE, RESHAPES, VIEW, permutation
from etx_exir.passes.base import NodePass


class MergeViews(NodePass):
    """Name views by `view_copy`, permutations by `permute_copy`, and make one of a chain."""

    targets = (*RESHAPES, *PERMUTATIONS)
    repeats = True

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        return self._view(node, graph) if node.target in RESHAPES else self._permute(node, graph)

    def _view(self, node: Node, graph: Graph) -> Node | None:
        source = node.args[0]
        shape = static_shape(node.meta["val"])
        while isinstance(source, Node) and source.target in RESHAPES:
            source = source.args[0]
        if shape is None:
            if node.target is not VIEW or source is node.args[0]:
                return None
            return graph.call_function(VIEW, (source, node.args[1]))
        if node.target is VIEW and source is node.args[0] and list(node.args[1]) == shape:  # type: ignore[arg-type]
            return None
        return graph.call_function(VIEW, (source, shape))

    def _permute(self, node: Node, graph: Graph) -> Node | None:
        source, order = node.args[0], permutation(node)
        while isinstance(source, Node) and source.target in PERMUTATIONS:
            inner = permutation(source)
            order = [inner[dim] for dim in order]
            source = source.args[0]
        assert isinstance(source, Node)
        before = source.meta["val"].shape
        moved = [dim for dim in order if not (isinstance(before[dim], int) and before[dim] == 1)]
        shape = static_shape(node.meta["val"])
        if moved == sorted(moved) and shape is not None:
            return graph.call_function(VIEW, (source, shape))
        if node.target is PERMUTE and source is node.args[0] and list(node.args[1]) == order:  # type: ignore[arg-type]
            return None
        return graph.call_function(PERMUTE, (source, order))
