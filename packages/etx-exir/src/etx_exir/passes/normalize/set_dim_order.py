# SPDX-License-Identifier: BSD-3-Clause
"""``to(x, memory_format=f)`` -> ``_to_dim_order_copy(x, dim_order=order(f))``, and the like."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import CLONE, EMPTY, TO_COPY, dim_order_of, dim_order_of_format
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

OPERATORS = {
    aten._to_copy.default: TO_COPY,
    aten.clone.default: CLONE,
    aten.empty.memory_format: EMPTY,
    aten.empty_permuted.default: EMPTY,
    aten.empty_strided.default: EMPTY,
}
LIKE = (
    aten.empty_like.default,
    aten.full_like.default,
    aten.ones_like.default,
    aten.rand_like.default,
    aten.randn_like.default,
    aten.zeros_like.default,
)


class SetDimOrder(NodePass):
    """Say the layout of a copy as an order of dimensions."""

    targets = (*OPERATORS, *LIKE)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        if node.target in LIKE:
            return self._like(node)
        kwargs: dict[str, Any] = dict(node.kwargs)
        memory_format = kwargs.pop("memory_format", None)
        value = node.meta["val"]
        if memory_format is None or memory_format is torch.preserve_format:
            source = node.args[0]
            order = dim_order_of(source.meta["val"] if isinstance(source, Node) else value)
        else:
            order = dim_order_of_format(memory_format, value.dim())
        kept = {k: v for k, v in kwargs.items() if k == "dtype"}
        kept["dim_order"] = list(order)
        return graph.call_function(OPERATORS[node.target], node.args[:1], kept)  # type: ignore[index]

    def _like(self, node: Node) -> Node | None:
        """Leave out the format of a new tensor that is contiguous in any case."""
        if node.kwargs.get("memory_format") is None:
            return None
        value = node.meta["val"]
        if dim_order_of(value) != tuple(range(value.dim())):
            return None
        node.kwargs = {k: v for k, v in node.kwargs.items() if k != "memory_format"}
        return node
