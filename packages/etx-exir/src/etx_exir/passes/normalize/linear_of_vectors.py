# SPDX-License-Identifier: BSD-3-Clause
"""``linear(v, w, b)`` -> ``squeeze(linear(unsqueeze(v), w, b))``: kernels take matrices."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.ops import SQUEEZE, UNSQUEEZE
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class LinearOfVectors(NodePass):
    """Let a linear layer of one vector be that of a matrix of one row."""

    targets = (aten.linear.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        vector, *rest = node.args
        assert isinstance(vector, Node)
        if vector.meta["val"].dim() != 1:
            return None
        row = graph.call_function(UNSQUEEZE, (vector, 0))
        result = graph.call_function(aten.linear.default, (row, *rest))
        return graph.call_function(SQUEEZE, (result, [0]))
