# SPDX-License-Identifier: BSD-3-Clause
"""``linear(x, w, b)`` -> ``linear(x, w) + b`` unless ``b`` has one element per row of ``w``."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.layout import same_sizes
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class AddBias(NodePass):
    """Add a bias of any other shape, which eager mode takes and kernels do not."""

    targets = (aten.linear.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        x, weight, *rest = node.args
        bias = rest[0] if rest else node.kwargs.get("bias")
        if bias is None:
            return None
        assert isinstance(weight, Node)
        assert isinstance(bias, Node)
        if same_sizes(bias.meta["val"].shape, weight.meta["val"].shape[:-1]):
            return None
        product = graph.call_function(aten.linear.default, (x, weight))
        return graph.call_function(aten.add.Tensor, (product, bias))
