# SPDX-License-Identifier: BSD-3-Clause
"""``index_put(x, i, v)`` -> ``index_put(x, i, view(v, [1, …, v.shape]))`` to the rank of ``x``."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import sizes, with_inferred
from etx_exir.ir.ops import VIEW
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class AlignIndexPut(NodePass):
    """Give the values all dimensions of the result: kernels that write rows in place need it."""

    targets = (aten.index_put.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        target, values = node.args[0], node.args[2]
        indices: Any = [index for index in node.args[1] if index is not None]  # type: ignore[union-attr]
        assert isinstance(target, Node)
        assert isinstance(values, Node)
        missing = target.meta["val"].dim() - values.meta["val"].dim()
        if missing <= 0 or len(indices) != 1 or not values.meta["val"].dim():
            return None
        if indices[0].meta["val"].dim() != 1 or indices[0].meta["val"].dtype is torch.bool:
            return None
        shape = with_inferred([1] * missing + sizes(graph, values))
        view = graph.call_function(VIEW, (values, shape))
        node.update_arg(2, view)
        return node
