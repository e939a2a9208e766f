# SPDX-License-Identifier: BSD-3-Clause
"""``x + expand(y, x.shape)`` -> ``x + y``: elementwise operators broadcast by themselves.

A ``y`` without dimensions stays expanded where it has another dtype than ``x``: without its
dimensions it would promote like a number.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import same_shape
from etx_exir.ir.ops import EXPAND, broadcasts
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class DropExpands(NodePass):
    """Read the small operand where another one has the result's shape."""

    def calls(self, graph: Graph) -> list[Node]:
        return [node for node in graph.nodes if broadcasts(node.target)]

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        operands = [arg for arg in node.args if isinstance(arg, Node)]
        result = node.meta["val"]
        full = [
            arg
            for arg in operands
            if arg.target is not EXPAND and same_shape(arg.meta["val"], result)
        ]
        values = operands[1:] if node.target is aten.where.self else operands
        alike = len({arg.meta["val"].dtype for arg in values}) == 1
        expands = [arg for arg in operands if arg.target is EXPAND]
        small = {
            arg: source
            for arg in expands
            for source in arg.all_input_nodes[:1]
            if alike or source.meta["val"].dim()
        }
        if not full or not expands:
            return None
        if not small:
            return "without its dimensions the operand would promote like a number"
        for arg, source in small.items():
            node.replace_input_with(arg, source)
        return node
