# SPDX-License-Identifier: BSD-3-Clause
"""``view(x, shape)`` -> ``view_copy(x, shape)``: no value shares memory with another."""

from __future__ import annotations

from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.ops import COPY_OF
from etx_exir.passes.base import NodePass, contiguous


class CopyViews(NodePass):
    """Name the copying form of every view; whether a copy is made is decided at emission."""

    targets = tuple(COPY_OF)

    def rewrite(self, node: Node, graph: Graph) -> Node:
        node.target = COPY_OF[node.target]  # type: ignore[index]
        with self.mode:
            node.meta["val"] = pytree.tree_map_only(Tensor, contiguous, node.meta["val"])
        return node
