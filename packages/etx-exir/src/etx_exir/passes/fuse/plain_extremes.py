# SPDX-License-Identifier: BSD-3-Clause
"""``max(x, d)[0]`` -> ``amax(x, d)``, ``min`` as ``amin``, where nothing reads the indices."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.ops import arguments
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
PLAIN = {aten.max.dim: aten.amax.default, aten.min.dim: aten.amin.default}


class PlainExtremes(NodePass):
    """Find only the values: int64 indices take twice the bytes of a float32 result."""

    targets = tuple(PLAIN)
    lowers = frozenset(PLAIN)

    def rewrite(self, node: Node, graph: Graph) -> tuple[Node, ...] | None:
        if any(user.args[1] != 0 for user in node.users):
            return None
        source, dim, keepdim = arguments(node).values()
        return (graph.call_function(PLAIN[node.target], (source, [dim], keepdim)),)  # type: ignore[index]
