# SPDX-License-Identifier: BSD-3-Clause
"""``roll(x, n)`` -> ``view(roll(view(x, [-1]), n, 0), shape)``: ExecuTorch's kernel needs dims."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import sizes, with_inferred
from etx_exir.ir.ops import VIEW
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class RollFlat(NodePass):
    """Say which dimension of a flattened tensor is rolled."""

    targets = (aten.roll.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        source, shifts, *dims = node.args
        assert isinstance(source, Node)
        if (dims and dims[0]) or node.kwargs.get("dims") or source.meta["val"].dim() == 0:
            return None
        shape = with_inferred(sizes(graph, source))
        if sum(isinstance(item, Node) for item in shape) > 1:
            return "more than one size is symbolic"
        flat = graph.call_function(VIEW, (source, [-1]))
        rolled = graph.call_function(aten.roll.default, (flat, shifts, [0]))
        return graph.call_function(VIEW, (rolled, shape))
