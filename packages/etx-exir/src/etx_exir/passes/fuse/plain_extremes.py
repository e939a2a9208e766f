# SPDX-License-Identifier: BSD-3-Clause
"""``max(x, d)[0]`` -> ``amax(x, d)``, ``min`` as ``amin``, where nothing reads the indices."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_exir.ir.ops import arguments
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
PLAIN = {aten.max.dim: aten.amax.default, aten.min.dim: aten.amin.default}


class PlainExtremes(NodePass):
    """Find only the values: int64 indices take twice the bytes of a float32 result."""

    targets = tuple(PLAIN)
    lowers = frozenset(PLAIN)

    def rewrite(self, node: Node, graph: Graph) -> tuple[Node, ...] | None:
        source, dim, keepdim = arguments(node).values()
        if any(user.args[1] != 0 for user in node.users):
            return None
        # ExecuTorch's kernel of amax ends the process where there are no elements.
        if not all(statically_known_true(size >= 1) for size in source.meta["val"].shape):
            return None
        return (graph.call_function(PLAIN[node.target], (source, [dim], keepdim)),)  # type: ignore[index]
