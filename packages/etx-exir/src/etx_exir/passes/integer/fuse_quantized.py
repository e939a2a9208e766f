# SPDX-License-Identifier: BSD-3-Clause
"""``quantize(f(dequantize(x), ...))`` -> an integer operator on ``x``; ``move(dequantize(x))`` ->
``dequantize(move(x))``.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Graph, Node

from etx_exir.integer.arithmetic import ARITHMETIC
from etx_exir.integer.clamps import clamped
from etx_exir.integer.interpolation import UPSAMPLING
from etx_exir.integer.layers import LAYERS
from etx_exir.integer.layout import Layouts
from etx_exir.integer.lookup import lookup
from etx_exir.integer.moves import MOVING, move
from etx_exir.integer.scales import QUANTIZE, called, scale_of
from etx_exir.passes.base import NodePass

ROWS = {**LAYERS, **ARITHMETIC, **UPSAMPLING}


class FuseQuantized(NodePass):
    """Compute in integers what only quantized values go into and come out of.

    Images stay channels last from one operator to the next. What is quantized on one side only
    stays float: `FuseDynamic` and `FuseWeights` take the weights of such layers.
    """

    def calls(self, graph: Graph) -> Iterable[Node]:
        """Yield what is quantized and what moves elements, in the order of the graph."""
        nodes = [n for n in graph.nodes if called(n) == QUANTIZE or n.target in MOVING]
        yield from (node for node in nodes if not node._erased)

    def rewrite(self, node: Node, graph: Graph) -> Node | tuple[Node, ...] | str | None:
        layouts = Layouts(self, graph)
        if node.target in MOVING:
            return move(node, layouts)
        scale = scale_of(node)
        if isinstance(scale, str):
            return scale
        found = clamped(node, scale)
        if isinstance(found, str):
            return found
        layouts.origin = found.source
        row = ROWS.get(found.source.target)
        if row is None:
            return lookup(node, scale, layouts)
        result = row(found, self.constants, layouts)
        if not isinstance(result, str):
            return result
        # What is elementwise on one tensor, the same twice or with a number, is a table after all.
        table = lookup(node, scale, layouts)
        return result if table is None or isinstance(table, str) else table
