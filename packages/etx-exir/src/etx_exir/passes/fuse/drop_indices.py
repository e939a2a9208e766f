# SPDX-License-Identifier: BSD-3-Clause
"""``max_pool2d_with_indices(x)[0]`` -> ``max_pool2d(x)``, where nothing reads the indices."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.own_ops import MAX_POOL2D
from etx_exir.passes.base import NodePass

WITH_INDICES = torch.ops.aten.max_pool2d_with_indices.default


class DropIndices(NodePass):
    """Find only the largest elements: int64 indices take twice the bytes of a float32 result."""

    targets = (WITH_INDICES,)
    makes = frozenset({MAX_POOL2D})

    def rewrite(self, node: Node, graph: Graph) -> tuple[Node, ...] | None:
        if any(user.args[1] != 0 for user in node.users):
            return None
        return (graph.call_function(MAX_POOL2D, node.args, node.kwargs),)
