# SPDX-License-Identifier: BSD-3-Clause
"""``split(x, n)`` -> ``split_with_sizes(x, [n, n, …])``, ``unbind(x)[i]`` -> ``select(x, i)``,
where another dimension is symbolic: these kernels resize their results."""

from __future__ import annotations

import operator

import torch
from torch.fx import Graph, Node

from etx_exir.ir.ops import SELECT, SPLIT, SPLIT_WITH_SIZES, UNBIND
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class SplitDynamic(NodePass):
    """Split tensors of symbolic shape by kernels that compute the results' shapes."""

    targets = (SPLIT, operator.getitem)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        call = node if node.target is SPLIT else node.args[0]
        if not isinstance(call, Node) or call.target not in (SPLIT, UNBIND):
            return None
        source = call.args[0]
        assert isinstance(source, Node)
        shape = source.meta["val"].shape
        if all(isinstance(extent, int) for extent in shape):
            return None
        dim = call.args[-1] if len(call.args) > (2 if call.target is SPLIT else 1) else 0
        if not isinstance(dim, int) or not isinstance(shape[dim], int):
            return None
        if call.target is UNBIND:
            return graph.call_function(SELECT, (source, dim, node.args[1]))
        if node.target is not SPLIT:
            return None
        lengths = [part.shape[dim] for part in node.meta["val"]]
        return graph.call_function(SPLIT_WITH_SIZES, (source, lengths, dim))
